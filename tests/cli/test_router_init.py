"""`weir smp init` and `weir smp cert`: an identity that keeps its address, and keys for the owner's eyes only."""

import stat
from pathlib import Path

import pytest

from weir.cli.main import main
from weir.crypto.certificates import certificate_key
from weir.crypto.identity import load_identity
from weir.redis.settings import read_key
from weir.wire.address import SmpAddress


@pytest.mark.parametrize("algorithm", ["ed448", "ed25519"])
def test_init_makes_everything_and_prints_the_address(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], algorithm: str
) -> None:
    home = tmp_path / "new"
    assert main(["smp", "init", "--dir", str(home), "--host", "smp.example.org", "--algorithm", algorithm]) == 0
    identity = load_identity(home / "identity")
    printed = capsys.readouterr().out.splitlines()[-1].split()[-1]
    assert SmpAddress.parse(printed) == SmpAddress(identity.fingerprint, ("smp.example.org",))
    assert identity.key.type == algorithm
    assert len(read_key(home / "placement.key", "a placement key")) == 32
    for path in (home / "placement.key", home / "identity" / "ca.key", home / "identity" / "server.key"):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600, path


def test_ed25519_is_the_default(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["smp", "init", "--dir", str(tmp_path)]) == 0
    identity = load_identity(tmp_path / "identity")
    assert [certificate_key(one)[0] for one in identity.chain] == ["ed25519", "ed25519"]
    assert main(["smp", "cert", "--dir", str(tmp_path)]) == 0
    assert capsys.readouterr().err == ""


def test_ed448_names_who_cannot_connect(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def warning(*words: str) -> str:
        assert main(["smp", *words, "--dir", str(tmp_path)]) == 0
        return capsys.readouterr().err

    said = warning("init", "--algorithm", "ed448")
    assert said.startswith("weir smp init: warning: the CA and the online certificate have Ed448 keys: clients that")
    assert "Go's crypto/tls or rustls" in said and said.count("\n") == 1
    address = load_identity(tmp_path / "identity").fingerprint
    said = warning("cert")
    assert said.startswith("weir smp cert: warning: the CA has an Ed448 key: clients that use Go's crypto/tls cannot")
    assert "rustls" not in said
    assert warning("cert", "--show") == said
    identity = load_identity(tmp_path / "identity")
    assert (identity.fingerprint, identity.key.type) == (address, "ed25519")


def test_an_ed448_online_certificate_of_an_ed25519_ca(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["smp", "init", "--dir", str(tmp_path)]) == 0
    assert main(["smp", "cert", "--dir", str(tmp_path), "--algorithm", "ed448"]) == 0
    assert "the online certificate has an Ed448 key" in capsys.readouterr().err


def test_init_never_overwrites(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["smp", "init", "--dir", str(tmp_path)]) == 0
    before = load_identity(tmp_path / "identity"), (tmp_path / "placement.key").read_text()
    assert main(["smp", "init", "--dir", str(tmp_path)]) == 1
    assert "there is an identity already" in capsys.readouterr().err
    assert (load_identity(tmp_path / "identity"), (tmp_path / "placement.key").read_text()) == before


def test_cert_changes_the_online_certificate_and_not_the_address(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["smp", "init", "--dir", str(tmp_path)])
    before = load_identity(tmp_path / "identity")
    assert main(["smp", "cert", "--dir", str(tmp_path), "--days", "30", "--algorithm", "ed25519"]) == 0
    after = load_identity(tmp_path / "identity")
    assert after.fingerprint == before.fingerprint
    assert after.chain[0] != before.chain[0]
    assert "valid for 29 more days, ed25519" in capsys.readouterr().out
    assert main(["smp", "cert", "--dir", str(tmp_path), "--show"]) == 0
    assert load_identity(tmp_path / "identity") == after


def test_cert_without_the_cas_key_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["smp", "init", "--dir", str(tmp_path)])
    (tmp_path / "identity" / "ca.key").unlink()
    assert main(["smp", "cert", "--dir", str(tmp_path)]) == 1
    assert capsys.readouterr().err == f"weir smp cert: {tmp_path / 'identity' / 'ca.key'}: no such file or directory\n"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--days", "0"), "argument --days: '0': expected a number from 1 to 1000000"),
        (("--days", "-5"), "argument --days: '-5': expected a number from 1 to 1000000"),
        (("--host", ""), "argument --host: '' is not a host name or an IP address"),
        (("--host", "a/b"), "argument --host: 'a/b' is not a host name or an IP address"),
    ],
)
@pytest.mark.parametrize("command", ["init", "cert"])
def test_what_cannot_be_is_one_line_and_makes_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str, words: tuple[str, ...], says: str
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["smp", command, "--dir", str(tmp_path / "new"), *words])
    assert ended.value.code == 2
    assert capsys.readouterr().err == f"weir smp {command}: error: {says} (`weir smp {command} --help` explains)\n"
    assert not (tmp_path / "new").exists()


def test_a_host_name_longer_than_a_certificates_may_be(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    host = ".".join(["subdomain"] * 10)
    assert main(["smp", "init", "--dir", str(tmp_path), "--host", host]) == 0
    assert f"@{host}" in capsys.readouterr().out
    assert load_identity(tmp_path / "identity")
