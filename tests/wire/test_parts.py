import pytest
from hypothesis import given

from tests.wire import strategies as s
from weir.wire import parts
from weir.wire.address import ServerHost
from weir.wire.encoding import Malformed, short
from weir.wire.versions import VersionRange


@given(s.server_host, s.versions, s.raw_key)
def test_round_trips(server: ServerHost, versions: VersionRange, key: bytes) -> None:
    assert parts.read_server_host(parts.server_host(server), 0)[0] == server
    assert parts.read_version_range(parts.version_range(versions), 0)[0] == versions
    assert parts.read_dh_key(parts.dh_key(key), 0)[0] == key


@given(s.auth_key)
def test_auth_keys(der: bytes) -> None:
    assert parts.read_auth_key(short(der), 0) == (der, len(der) + 1)


@pytest.mark.parametrize(
    "der",
    [
        b"",
        bytes(44),
        bytes.fromhex("302a300506032b6570032100") + bytes(31),
        bytes.fromhex("3042300506032b656f033900") + bytes(56),
    ],
    ids=["empty", "zeros", "short", "x448"],
)
def test_not_an_auth_key(der: bytes) -> None:
    with pytest.raises(Malformed):
        parts.read_auth_key(short(der), 0)


def test_dh_key_must_be_x25519() -> None:
    with pytest.raises(Malformed):
        parts.read_dh_key(short(bytes.fromhex("302a300506032b6570032100") + bytes(32)), 0)


def test_range_upside_down() -> None:
    with pytest.raises(Malformed):
        parts.read_version_range(b"\x00\x07\x00\x06", 0)


def test_server_without_hosts() -> None:
    with pytest.raises(Malformed):
        parts.read_server_host(b"\x00" + short(b"") + short(bytes(32)), 0)
    with pytest.raises(Malformed):
        parts.read_server_host(b"\x01" + short(b"a b") + short(b"") + short(bytes(32)), 0)
