from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.wire import strategies as s
from weir.wire.errors import HandshakeError, TransportError
from weir.wire.parts import dh_key
from weir.wire.smp import handshake as h
from weir.wire.smp.commands import ServiceRole
from weir.wire.smp.replies import CertChainKey
from weir.wire.versions import VersionRange


@given(s.server_hello, st.binary(max_size=20))
def test_server_hello(hello: h.ServerHello, later: bytes) -> None:
    expected = hello if hello.versions.max >= 7 else replace(hello, key=None)
    encoded = h.encode_server_hello(hello)
    assert h.decode_server_hello(encoded) == expected
    if hello.key is not None or hello.versions.max < 7:
        assert h.decode_server_hello(encoded + later) == expected


@given(s.client_hello, st.binary(max_size=20))
def test_client_hello(hello: h.ClientHello, later: bytes) -> None:
    expected = replace(
        hello,
        key=hello.key if hello.version >= 7 else None,
        proxy=hello.proxy if hello.version >= 14 else False,
        service=hello.service if hello.version >= 16 else None,
    )
    encoded = h.encode_client_hello(hello)
    assert h.decode_client_hello(encoded) == expected
    if hello.key is not None or hello.version < 7:
        assert h.decode_client_hello(encoded + later) == expected


@given(s.service_response)
def test_service_response(response: h.ServiceResponse) -> None:
    encoded = h.encode_service_response(response)
    assert h.decode_service_response(encoded) == response
    assert h.decode_service_response(encoded + b" later") == response


@given(s.mutated(s.server_hello.map(h.encode_server_hello)))
def test_server_hello_total(data: bytes) -> None:
    hello = h.decode_server_hello(data)
    if isinstance(hello, h.ServerHello):
        assert h.decode_server_hello(h.encode_server_hello(hello)) == hello


@given(s.mutated(s.client_hello.map(h.encode_client_hello)))
def test_client_hello_total(data: bytes) -> None:
    hello = h.decode_client_hello(data)
    if isinstance(hello, h.ClientHello):
        assert h.decode_client_hello(h.encode_client_hello(hello)) == hello


@given(s.mutated(s.service_response.map(h.encode_service_response)))
def test_service_response_total(data: bytes) -> None:
    h.decode_service_response(data)


_KEY = b"k" * 32
_CERT = CertChainKey((b"cert",), b"signed")


@pytest.mark.parametrize(
    ("hello", "tail"),
    [
        (h.ClientHello(6, b"h", _KEY), b""),
        (h.ClientHello(7, b"h", _KEY), dh_key(_KEY)),
        (h.ClientHello(13, b"h", _KEY, True), dh_key(_KEY)),
        (h.ClientHello(14, b"h", _KEY, True), dh_key(_KEY) + b"T"),
        (h.ClientHello(19, b"h", _KEY), dh_key(_KEY) + b"F0"),
        (h.ClientHello(19, b"h", None), b"F0"),
        (
            h.ClientHello(16, b"h", None, False, h.ClientService(ServiceRole.NOTIFIER, _CERT)),
            b"F1N\x01\x00\x04cert\x00\x06signed",
        ),
    ],
)
def test_what_a_version_adds(hello: h.ClientHello, tail: bytes) -> None:
    assert h.encode_client_hello(hello) == hello.version.to_bytes(2, "big") + b"\x01h" + tail


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x00\x13",
        b"\x00\x13\x05h",
        b"\x00\x13\x01h",
        b"\x00\x13\x01hX",
        b"\x00\x13\x01hF",
        b"\x00\x13\x01hF2",
        b"\x00\x13\x01hF1X\x01\x00\x00\x00\x00",
        b"\x00\x13\x01hF1M\x00",
        b"\x00\x0e\x01h",
    ],
)
def test_not_a_client_hello(data: bytes) -> None:
    assert h.decode_client_hello(data) is HandshakeError.PARSE


@pytest.mark.parametrize("data", [b"", b"\x00\x06\x00", b"\x00\x07\x00\x06\x00", b"\x00\x06\x00\x13\x05a"])
def test_not_a_server_hello(data: bytes) -> None:
    assert h.decode_server_hello(data) is HandshakeError.PARSE


def test_the_routers_key_is_optional() -> None:
    hello = h.ServerHello(VersionRange(6, 19), b"s")
    assert h.decode_server_hello(h.encode_server_hello(hello) + b"not a key") == hello


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", HandshakeError.PARSE),
        (b"X", HandshakeError.PARSE),
        (b"R", HandshakeError.PARSE),
        (b"R\x02a", HandshakeError.PARSE),
        (b"R\x01ab", h.ServiceAccepted(b"a")),
        (b"E", HandshakeError.PARSE),
        (b"ENOPE", HandshakeError.PARSE),
        (b"EVERSION", h.ServiceRefused(TransportError.VERSION)),
        (b"EHANDSHAKE BAD_SERVICE", h.ServiceRefused(HandshakeError.BAD_SERVICE)),
    ],
)
def test_third_message(data: bytes, expected: object) -> None:
    assert h.decode_service_response(data) == expected
