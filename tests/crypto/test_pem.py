import os
import stat
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, Encoding, NoEncryption, PrivateFormat

from weir.crypto import pem
from weir.crypto.certificates import make_ca, make_online, private_key
from weir.crypto.keys import KeyType, generate

_CA = make_ca("ed25519")
_CHAIN = (make_online(_CA, "localhost", "ed25519").certificate, _CA.certificate)


@pytest.mark.parametrize("key_type", ["ed25519", "ed448"])
def test_keys(tmp_path: Path, key_type: KeyType) -> None:
    pair = generate(key_type)
    path = tmp_path / "x.key"
    pem.save_key(path, pair)
    assert pem.load_key(path) == pair
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_readable_file_becomes_the_owners(tmp_path: Path) -> None:
    path = tmp_path / "x.key"
    path.write_text("old")
    path.chmod(0o644)
    pem.save_key(path, generate("ed25519"))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_loose_umask_does_not_matter(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        pem.save_key(tmp_path / "x.key", generate("ed25519"))
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "x.key").stat().st_mode) == 0o600


def test_certificates(tmp_path: Path) -> None:
    path = tmp_path / "x.crt"
    pem.save_certificates(path, _CHAIN)
    assert pem.load_certificates(path) == _CHAIN
    assert [entry.name for entry in tmp_path.iterdir()] == ["x.crt"]


def test_nothing_is_left_of_a_failed_write(tmp_path: Path) -> None:
    target = tmp_path / "directory"
    target.mkdir()
    with pytest.raises(OSError, match="directory"):
        pem.write_file(target, b"data", 0o600)
    assert [entry.name for entry in tmp_path.iterdir()] == ["directory"]


@pytest.mark.parametrize("text", [b"", b"nonsense", b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"])
def test_no_certificate(text: bytes) -> None:
    with pytest.raises(pem.UnusableFile, match=r"x\.crt: no certificate"):
        pem.certificates_from_pem(text, "x.crt")


def _encrypted() -> bytes:
    key = private_key(generate("ed25519"))
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"password"))


def _other_kind() -> bytes:
    key = ec.generate_private_key(ec.SECP256R1())
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"", "no unencrypted"),
        (b"nonsense", "no unencrypted"),
        (_encrypted(), "no unencrypted"),
        (_other_kind(), "neither"),
    ],
    ids=["empty", "nonsense", "encrypted", "P-256"],
)
def test_no_key(text: bytes, message: str) -> None:
    with pytest.raises(pem.UnusableFile, match=message):
        pem.key_from_pem(text, "x.key")
