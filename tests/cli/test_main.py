"""The `weir` command: it finds its commands, its help teaches, and it fails with one line."""

import subprocess
import sys

import pytest

import weir
from weir.cli import main as cli
from weir.cli import smp
from weir.cli.main import main

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


@pytest.mark.parametrize("arguments", [["fly"], ["smp", "fly"]])
def test_an_unknown_command_names_the_known_ones(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 2
    assert "unknown command 'fly'; the commands are " in capsys.readouterr().err


TAUGHT = [[name] for name in cli.COMMANDS if name != "smp"] + [["smp", name] for name in smp.COMMANDS]


@pytest.mark.parametrize("command", TAUGHT, ids=" ".join)
def test_every_command_teaches(command: list[str]) -> None:
    done = run(*command, "--help")
    assert done.returncode == 0, done.stderr
    assert "usage: weir" in done.stdout
    assert "examples:" in done.stdout
    assert f"weir {' '.join(command)} " in done.stdout.partition("examples:")[2]


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
