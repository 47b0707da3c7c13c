import base64
import stat
from pathlib import Path

import pytest

from weir.crypto.certificates import fingerprint, validate_chain
from weir.crypto.identity import IdentityPaths, init_identity, load_identity, renew_online
from weir.crypto.keys import KeyType, generate
from weir.crypto.pem import UnusableFile, save_certificates, save_key


@pytest.mark.parametrize("key_type", ["ed448", "ed25519"])
def test_a_new_identity(tmp_path: Path, key_type: KeyType) -> None:
    directory = tmp_path / "new" / "identity"
    identity = init_identity(directory, "localhost", key_type)
    paths = IdentityPaths.of(directory)
    assert load_identity(directory) == identity
    assert validate_chain(identity.chain) is None
    assert identity.fingerprint == fingerprint(identity.chain[1])
    assert base64.urlsafe_b64decode(paths.fingerprint.read_text().strip()) == identity.fingerprint
    for path in (paths.ca_key, paths.key):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700


def test_an_identity_is_never_overwritten(tmp_path: Path) -> None:
    before = init_identity(tmp_path, "localhost", "ed25519")
    with pytest.raises(UnusableFile, match="identity already"):
        init_identity(tmp_path, "localhost", "ed25519")
    assert load_identity(tmp_path) == before


@pytest.mark.parametrize("left", ["ca.key", "server.crt", "server.key"])
def test_what_is_left_of_an_identity_is_never_overwritten(tmp_path: Path, left: str) -> None:
    """A CA certificate that went astray can be put back; a new CA would lose the address for good."""
    (tmp_path / left).write_text("what is left")
    with pytest.raises(UnusableFile, match=rf"ca\.crt: missing, but {left} is there"):
        init_identity(tmp_path, "localhost", "ed25519")
    assert [path.name for path in tmp_path.iterdir()] == [left]


def test_the_ca_of_another_identity(tmp_path: Path) -> None:
    ours, other = tmp_path / "ours", tmp_path / "other"
    before = init_identity(ours, "localhost", "ed25519")
    init_identity(other, "localhost", "ed25519")
    (ours / "ca.crt").rename(tmp_path / "ca.crt")
    (other / "ca.crt").rename(ours / "ca.crt")
    with pytest.raises(UnusableFile, match=r"server\.crt: not signed by ca\.crt"):
        load_identity(ours)
    with pytest.raises(UnusableFile, match=r"ca\.key: not the key of ca\.crt"):
        renew_online(ours, "localhost", "ed25519")
    (tmp_path / "ca.crt").rename(ours / "ca.crt")
    assert load_identity(ours) == before, "nothing was changed"


def test_a_new_online_certificate_keeps_the_address(tmp_path: Path) -> None:
    before = init_identity(tmp_path, "localhost", "ed25519")
    after = renew_online(tmp_path, "localhost", "ed448", days=90)
    assert after.fingerprint == before.fingerprint
    assert after.chain[0] != before.chain[0]
    assert after.key.type == "ed448"
    assert validate_chain(after.chain) is None


def test_an_edge_does_not_need_the_cas_key(tmp_path: Path) -> None:
    identity = init_identity(tmp_path, "localhost", "ed25519")
    IdentityPaths.of(tmp_path).ca_key.unlink()
    assert load_identity(tmp_path) == identity


def test_a_whole_chain_in_one_file(tmp_path: Path) -> None:
    identity = init_identity(tmp_path, "localhost", "ed25519")
    save_certificates(IdentityPaths.of(tmp_path).certificate, identity.chain)
    assert load_identity(tmp_path) == identity


def test_key_and_certificate_must_belong_together(tmp_path: Path) -> None:
    init_identity(tmp_path, "localhost", "ed25519")
    save_key(IdentityPaths.of(tmp_path).key, generate("ed25519"))
    with pytest.raises(UnusableFile, match=r"not for server\.key"):
        load_identity(tmp_path)
