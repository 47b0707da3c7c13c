import pytest
from hypothesis import given

from tests.wire import strategies as s
from weir.wire.encoding import Malformed, short
from weir.wire.smp import parts
from weir.wire.smp.commands import LinkData
from weir.wire.smp.replies import CertChainKey


@given(s.link_data, s.cert_chain_key)
def test_round_trips(link: LinkData, cert_key: CertChainKey) -> None:
    assert parts.read_link_data(parts.link_data(link), 0)[0] == link
    assert parts.read_cert_chain_key(parts.cert_chain_key(cert_key), 0)[0] == cert_key


@pytest.mark.parametrize(
    ("value", "valid"),
    [
        *((value, True) for value in (b"secret", b"", b"\xe9")),
        *((value, False) for value in (b"a b", b"a@b", b"a:b", b"a/b", b"\x7f", b"\xa0", b"\xad", b"\n")),
    ],
)
def test_basic_auth(value: bytes, valid: bool) -> None:
    assert parts.is_basic_auth(value) is valid
    if not valid:
        with pytest.raises(Malformed):
            parts.read_basic_auth(short(value), 0)


def test_sender_id() -> None:
    assert parts.sender_id_of(b"x" * 24) != parts.sender_id_of(b"y" * 24)
    assert len(parts.sender_id_of(b"")) == 24
