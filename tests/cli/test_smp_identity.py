"""`weir smp init` and `weir smp cert`: an identity that keeps its address, and keys for the owner's eyes only."""

import stat
from pathlib import Path

import pytest

from weir.cli.main import main
from weir.crypto.identity import load_identity
from weir.router.config import read_placement_key
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
    assert len(read_placement_key(home / "placement.key")) == 32
    for path in (home / "placement.key", home / "identity" / "ca.key", home / "identity" / "server.key"):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600, path


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
        (("--days", "0"), "argument --days: '0' is not a positive number"),
        (("--days", "-5"), "argument --days: '-5' is not a positive number"),
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
    assert capsys.readouterr().err.splitlines()[-1] == f"weir smp {command}: error: {says}"
    assert not (tmp_path / "new").exists()


def test_a_host_name_longer_than_a_certificates_may_be(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    host = ".".join(["subdomain"] * 10)
    assert main(["smp", "init", "--dir", str(tmp_path), "--host", host]) == 0
    assert f"@{host}" in capsys.readouterr().out
    assert load_identity(tmp_path / "identity")
