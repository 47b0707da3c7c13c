"""The `weir` command: it finds its commands, its help teaches, and it fails with one line."""

import argparse
import contextlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

import weir
from weir.cli import main as cli
from weir.cli import pipeline, routers
from weir.cli.main import main
from weir.cli.programs import PROGRAMS

# Modules that `weir --help` must not import, because they are slow to load.
HEAVY = ("asyncio", "aiohttp", "redis", "cryptography", "opentelemetry", "kopf", "weir.router", "weir.redis")


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "weir.cli.main", *arguments], capture_output=True, text=True, timeout=30, check=False
    )


@pytest.mark.parametrize("arguments", [[], ["--help"], ["help"]])
def test_it_lists_its_commands(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 0
    text = capsys.readouterr().out
    assert all(f"\n  {name} " in text for name in cli.COMMANDS)


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"weir {weir.__version__}\n"


@pytest.mark.parametrize("arguments", [["fly"], ["smp", "fly"], ["ntf", "fly"], ["pipeline", "fly"]])
def test_an_unknown_command_names_the_known_ones(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 2
    assert "unknown command 'fly'; the commands are " in capsys.readouterr().err


TAUGHT = [
    *([name] for name in cli.COMMANDS if name not in (*PROGRAMS, "pipeline")),
    *(["pipeline", name] for name in pipeline.COMMANDS),
    *([program.name, name] for program, commands in routers.COMMANDS.items() for name in commands),
]


@pytest.mark.parametrize("command", TAUGHT, ids=" ".join)
def test_every_command_teaches(command: list[str]) -> None:
    done = run(*command, "--help")
    assert done.returncode == 0, done.stderr
    assert "usage: weir" in done.stdout
    assert "examples:" in done.stdout
    assert f"weir {' '.join(command)} " in done.stdout.partition("examples:")[2]


def options_of(command: list[str], monkeypatch: pytest.MonkeyPatch) -> list[argparse.Action]:
    """Ask a command for its parser, and run nothing."""
    found: list[argparse.Action] = []

    def read(self: argparse.ArgumentParser, *_: object) -> None:
        found.extend(self._actions)
        raise SystemExit

    for name in ("parse_args", "parse_intermixed_args"):
        monkeypatch.setattr(argparse.ArgumentParser, name, read)
    with pytest.raises(SystemExit):
        main(command)
    return found


@pytest.mark.parametrize("command", TAUGHT, ids=" ".join)
def test_every_number_has_a_range(command: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    for option in options_of(command, monkeypatch):
        assert option.type not in (int, float), f"{option.option_strings}: without a range"
        if option.type in (None, Path):
            continue
        for text in ("-1", "nan", "1e400", "99999999999999999999", "x", "", "\0"):
            with contextlib.suppress(argparse.ArgumentTypeError):
                option.type(text)  # type: ignore[operator]


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("bench cycle --seconds -1", "--seconds: '-1': expected a number from 0.1 to 86400"),
        ("bench cycle --size 99999", "--size: '99999': expected a number from 1 to 16048"),
        ("bench sub --smp-version 5", "--smp-version: '5': expected a number from 6 to 19"),
        ("bench service --waiting -3", "--waiting: '-3': expected a number from 0 to 100000000"),
        ("up --edges 0", "--edges: '0': expected a number from 1 to 1000"),
        ("up --smp-port 65536", "--smp-port: '65536': expected a number from 0 to 65535"),
        ("ping smp://x --timeout -1", "--timeout: '-1': expected a number from 0.1 to 86400"),
        ("smp edge --ready-fd 4000", "--ready-fd: '4000': no open file descriptor"),
        ("ntf edge --ready-fd 4000", "--ready-fd: '4000': no open file descriptor"),
        ("operator --workers 0", "--workers: '0': expected a number from 1 to 1000"),
    ],
)
def test_a_number_out_of_range_is_one_line(line: str, says: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(line.split())
    said = capsys.readouterr().err
    assert ended.value.code == 2
    assert f"error: argument {says} (`weir " in said and said.count("\n") == 1


NO_NAME = f"smp://{'A' * 43}=@a..b"  # DNS cannot encode it


@pytest.mark.parametrize(
    ("line", "says"),
    [
        (f"ping {NO_NAME}", "weir ping: a..b:5223: NETWORK: cannot connect"),
        (f"smp check --address {NO_NAME} --resolve a..b", "weir smp check: --resolve a..b: not a host name"),
        ("smp ctl --host a..b stats", "weir smp ctl: control port a..b:5224: not a host name"),
        ("smp edge --config edge.toml", "weir smp edge: Redis at a..b:6379 cannot be reached: not a host name"),
        ("service list --config edge.toml", "weir service: Redis at a..b:6379 cannot be reached: not a host name"),
        ("operator --http-listen a..b", "cannot listen on a..b:8080: not a host name"),
        ("operator --log-level loud", "--log-level: 'loud': expected "),
    ],
)
def test_a_text_that_cannot_be_used_is_one_line(line: str, says: str, tmp_path: Path) -> None:
    if line.startswith(("smp edge", "service")):
        main(["smp", "init", "--dir", str(tmp_path)])
        (tmp_path / "edge.toml").write_text('[redis]\nurl = "redis://a..b:6379"\nconnect_timeout = "0.2s"\n')
    done = subprocess.run(
        [sys.executable, "-m", "weir.cli.main", *line.split()],
        cwd=tmp_path,
        env={name: value for name, value in os.environ.items() if not name.startswith("WEIR_")},
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert done.returncode in (1, 2)
    assert says in done.stderr and done.stderr.count("\n") == 1, done.stderr


def test_a_command_imports_only_what_it_needs() -> None:
    code = (
        "import sys; from weir.cli.main import main; main(['--help']);"
        f"print([m for m in {HEAVY!r} if m in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=30, check=True)
    assert done.stderr == "[]\n"


def test_the_version_is_the_packages() -> None:
    from importlib.metadata import version

    assert version("weir") == weir.__version__
