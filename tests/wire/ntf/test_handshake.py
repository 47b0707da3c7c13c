from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.wire import strategies as s
from weir.wire.errors import HandshakeError
from weir.wire.ntf import handshake as h


@given(s.ntf_server_hello, st.binary(max_size=20))
def test_server_hello(hello: h.NtfServerHello, later: bytes) -> None:
    expected = hello if hello.versions.max >= 2 else replace(hello, signed_key=None)
    assert h.decode_server_hello(h.encode_server_hello(hello) + later) == expected


@given(s.ntf_client_hello, st.binary(max_size=20))
def test_client_hello(hello: h.NtfClientHello, later: bytes) -> None:
    assert h.decode_client_hello(h.encode_client_hello(hello) + later) == hello


@pytest.mark.parametrize("data", [b"", b"\x00\x01\x00\x03\x01", b"\x00\x02\x00\x01\x00", b"\x00\x01\x00\x02\x00"])
def test_not_a_server_hello(data: bytes) -> None:
    """From version 2 on, the signed key must be there."""
    assert h.decode_server_hello(data) is HandshakeError.PARSE


@given(st.binary(max_size=60))
def test_total(data: bytes) -> None:
    h.decode_server_hello(data)
    h.decode_client_hello(data)


@pytest.mark.parametrize("data", [b"", b"\x00", b"\x00\x03\x05a"])
def test_not_a_client_hello(data: bytes) -> None:
    assert h.decode_client_hello(data) is HandshakeError.PARSE
