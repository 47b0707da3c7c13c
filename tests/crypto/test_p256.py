import json
import subprocess
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from weir.crypto import p256
from weir.crypto.pem import UnusableFile

# RFC 6979, A.2.5
_RFC6979_KEY = 0xC9AFA9D845BA75166B5C215767B1D6934E50C3DB36E89B127B8A622B120F6721
_RFC6979_SIGNATURE = (
    "efd48b2aacb6a8fd1140dd9cd45e81d69d2c877b56aaf991c34d0ea84eaf3716"
    "f7cb1c942d657c41d436c7a1b6e29f65f3e900dbb9aff4064dc4ab2f843acda8"
)
# RFC 8292, 2.4
_RFC8292_TOKEN = (
    b"eyJ0eXAiOiJKV1QiLCJhbGciOiJFUzI1NiJ9.eyJhdWQiOiJodHRwczovL3B1c2guZXhhbXBsZS5uZXQiLCJleHAiOjE0NTM1MjM3Njgs"
    b"InN1YiI6Im1haWx0bzpwdXNoQGV4YW1wbGUuY29tIn0.i3CYb7t4xfxCDquptFOepC9GAu_HLGkMlMuCGSK2rpiUfnK9ojFwDXb1JrErtmys"
    b"azNjjvW2L9OkSSHzvoD1oA"
)
_RFC8292_KEY = b"BA1Hxzyi1RUM1b5wjxsn7nGxAszw2u61m164i3MrAIxHF6YK5h4SDYic-dRuU_RCPCfA5aq9ojSwk5Y2EmClBPs"


def test_signatures_are_those_of_rfc_6979() -> None:
    key = ec.derive_private_key(_RFC6979_KEY, ec.SECP256R1())
    assert p256.sign(key, b"sample").hex() == _RFC6979_SIGNATURE
    assert p256.verify(key.public_key(), b"sample", bytes.fromhex(_RFC6979_SIGNATURE))


def test_the_token_of_rfc_8292() -> None:
    """Our token of the same claims has the same text; the RFC's signature is a random one."""
    key = p256.public_key(p256.from_base64url(_RFC8292_KEY))
    assert key is not None
    read = p256.read_web_token(key, _RFC8292_TOKEN)
    assert read is not None
    header, claims = read
    assert claims == {"aud": "https://push.example.net", "exp": 1453523768, "sub": "mailto:push@example.com"}
    ours = p256.web_token(p256.generate(), header, claims)
    assert ours.rpartition(b".")[0] == _RFC8292_TOKEN.rpartition(b".")[0]


def test_a_token_is_signed_with_r_and_s_not_der() -> None:
    key = p256.generate()
    token = p256.web_token(key, {"kid": "K"}, {"iss": "T", "iat": 1})
    assert len(p256.from_base64url(token.rpartition(b".")[2])) == 64
    assert p256.read_web_token(key.public_key(), token) == ({"kid": "K", "alg": "ES256"}, {"iss": "T", "iat": 1})
    assert p256.web_token(key, {"kid": "K"}, {"iss": "T", "iat": 1}) == token


def _with_header(header: object) -> bytes:
    return p256.base64url(json.dumps(header).encode()) + b".e30.AAAA"


@pytest.mark.parametrize(
    "token", [b"", b"a.b", b"a.b.c.d", b"\xff.\xff.\xff", _with_header({}), _with_header([]), _with_header("ES256")]
)
def test_wrong_tokens(token: bytes) -> None:
    assert p256.read_web_token(p256.generate().public_key(), token) is None


def test_a_token_of_another_key() -> None:
    assert p256.read_web_token(p256.generate().public_key(), p256.web_token(p256.generate(), {}, {})) is None


def test_points() -> None:
    key = p256.generate().public_key()
    encoded = p256.point(key)
    assert len(encoded) == 65
    again = p256.public_key(encoded)
    assert again is not None
    assert p256.point(again) == encoded


@pytest.mark.parametrize("wrong", [b"", bytes(65), b"\x04" + bytes(64), b"\x04" + b"\x01" * 64, b"\x02" + bytes(32)])
def test_no_points(wrong: bytes) -> None:
    assert p256.public_key(wrong) is None


def test_both_ends_agree() -> None:
    one, other = p256.generate(), p256.generate()
    assert p256.agree(one, other.public_key()) == p256.agree(other, one.public_key())


def test_key_files(tmp_path: Path) -> None:
    key = p256.generate()
    p256.save_key(tmp_path / "a.key", key)
    assert (tmp_path / "a.key").stat().st_mode & 0o777 == 0o600
    assert p256.point(p256.load_key(tmp_path / "a.key").public_key()) == p256.point(key.public_key())
    sec1 = key.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption())
    assert p256.point(p256.key_from_pem(sec1).public_key()) == p256.point(key.public_key())


def test_files_without_a_usable_key() -> None:
    other_curve = ec.generate_private_key(ec.SECP384R1()).private_bytes(
        Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()
    )
    for pem, message in ((b"nonsense", "AuthKey.p8: no unencrypted"), (other_curve, "AuthKey.p8: the key is not of")):
        with pytest.raises(UnusableFile, match=message):
            p256.key_from_pem(pem, "AuthKey.p8")


def test_a_file_with_several_keys() -> None:
    """The keys come back in their order, and a reader of one key finds the current one."""
    current, older = p256.generate(), p256.generate()
    pem = p256.keys_to_pem(current, older)
    points = [p256.point(key.public_key()) for key in p256.keys_from_pem(pem)]
    assert points == [p256.point(key.public_key()) for key in (current, older)]
    assert p256.point(p256.key_from_pem(pem).public_key()) == points[0]


@pytest.mark.parametrize(
    "options", ["ecparam -name prime256v1 -genkey", "genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256"]
)
def test_keys_of_openssl(options: str) -> None:
    made = subprocess.run(["openssl", *options.split()], capture_output=True, check=True).stdout
    assert len(p256.keys_from_pem(made)) == 1


@pytest.mark.parametrize("pem", [b"", b"-----BEGIN PRIVATE KEY-----\nx\n-----END PRIVATE KEY-----"])
def test_a_file_without_a_key(pem: bytes) -> None:
    with pytest.raises(UnusableFile, match=r"^vapid\.key: no unencrypted private key"):
        p256.keys_from_pem(pem, "vapid.key")


def test_the_published_text_of_a_key() -> None:
    text = p256.public_text(p256.generate())
    assert len(text) == 87
    assert p256.public_key(p256.from_base64url(text.encode())) is not None
