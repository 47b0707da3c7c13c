"""The documentation is true: links have targets, commands exist and run, tables agree with the code."""

import functools
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.up import Up, weir_up
from weir.cli import main as cli
from weir.cli import pipeline, routers
from weir.cli.programs import PROGRAMS
from weir.notifier.surface import metrics as notifier_metrics
from weir.router.surface.metrics import render_fleet
from weir.telemetry.metrics import process_numbers, render_edge

ROOT = Path(__file__).parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")])
BIN = Path(sys.executable).parent


def page_ids(path: Path) -> str:
    return str(path.relative_to(ROOT))


def blocks(path: Path) -> Iterator[str]:
    yield from re.findall(r"^```(?:sh|shell|bash)\n(.*?)^```", path.read_text(), re.MULTILINE | re.DOTALL)


def weir_commands(path: Path) -> Iterator[list[str]]:
    """Every `weir …` of a page, in blocks and in running text."""
    text = path.read_text()
    lines = [line for block in blocks(path) for line in block.splitlines()]
    lines += re.findall(r"`(weir [^`]+)`", text)
    for line in lines:
        line = line.split(" #")[0].strip().removeprefix(".venv/bin/")
        if line.startswith("weir "):
            yield shlex.split(line)[1:]


@pytest.mark.parametrize("path", PAGES, ids=page_ids)
def test_links_lead_somewhere(path: Path) -> None:
    for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", path.read_text()):
        if "://" not in target:
            assert (path.parent / target).exists(), f"{path.name} → {target}"


@pytest.mark.parametrize("path", PAGES, ids=page_ids)
def test_every_weir_command_exists_with_its_options(path: Path) -> None:
    for words in weir_commands(path):
        name = words[0]
        if name in ("COMMAND", "--help", "--version"):
            continue
        assert name in cli.COMMANDS, words
        if name in PROGRAMS and len(words) > 1 and words[1] not in ("COMMAND", "…"):
            assert words[1] in routers.COMMANDS[PROGRAMS[name]], words
            name = f"{name} {words[1]}"
        if name == "pipeline" and len(words) > 1 and words[1] not in ("COMMAND", "…"):
            assert words[1] in pipeline.COMMANDS, words
            name = f"{name} {words[1]}"
        for word in words:
            if word.startswith("--") and name != "bench":
                assert word.partition("=")[0] in help_of(name), f"{name} has no {word}"


@functools.cache
def help_of(command: str) -> str:
    words = [str(BIN / "weir"), *command.split(), "--help"]
    return subprocess.run(words, capture_output=True, text=True, timeout=30, check=True).stdout


@pytest.mark.parametrize("path", PAGES, ids=page_ids)
def test_every_make_target_exists(path: Path) -> None:
    makefile = (ROOT / "Makefile").read_text()
    lines = [line.split("#")[0] for block in blocks(path) for line in block.splitlines()]
    lines += re.findall(r"`(make [^`]+)`", path.read_text())
    for line in lines:
        if line.startswith("make "):
            targets = [word for word in shlex.split(line)[1:] if "=" not in word and not word.startswith("-")]
            for target in targets:
                assert re.search(rf"^{target}:", makefile, re.MULTILINE), f"{path.name}: make {target}"


def test_settings_and_environment_variables_exist() -> None:
    schemas = [program.schema for program in PROGRAMS.values()]
    known = {schema.environment_name(name, s.name) for schema in schemas for name, s in schema.settings()}
    keys = {(name, s.name) for schema in schemas for name, s in schema.settings()}
    for path in PAGES:
        text = path.read_text()
        for variable in re.findall(r"\bWEIR_[A-Z0-9_]+", text):
            if not variable.startswith(("WEIR_OPERATOR_", "WEIR_SECTION_")) and variable not in OTHER_VARIABLES:
                assert {variable, variable.removesuffix("_FILE")} & known, f"{path.name}: {variable}"
        for section, key in re.findall(r"`\[(\w+)\] (\w+)", text):
            assert (section, key) in keys, f"{path.name}: [{section}] {key}"


OTHER_VARIABLES = {
    "WEIR_CONTROL_PASSWORD",
    "WEIR_CRYPTO_MB",
    "WEIR_REDIS_SERVER",
    "WEIR_PIPELINE_JARS",
    "WEIR_TEST_SERVERS",
    "WEIR_LOG_LEVEL",
}


def test_metrics_exist() -> None:
    text = render_fleet({}, {}, {}, {}, "5223", "1") + notifier_metrics.render_fleet({}, {}, {}, {}, (), "1")
    text += render_edge(dict.fromkeys(("certificate_days",), 1), {"x": 1}, ready=True, uptime=1, version="1")
    names = set(re.findall(r"^# TYPE (\S+)", text, re.MULTILINE))
    assert process_numbers()
    for path in PAGES:
        for name in re.findall(r"`((?:weir|simplex_smp|simplex_ntf)_[a-z0-9_]+)`", path.read_text()):
            if not name.startswith("weir_operator"):
                assert name in names, f"{path.name}: {name}"


def test_the_configuration_page_is_what_the_code_says() -> None:
    done = subprocess.run(
        [str(BIN / "weir"), "smp", "config", "markdown"], capture_output=True, text=True, timeout=30, check=True
    )
    assert (ROOT / "docs" / "configuration.md").read_text() == done.stdout, (
        "weir smp config markdown > docs/configuration.md"
    )


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    with weir_up(tmp_path_factory.mktemp("docs") / "home") as running:
        yield running


# Commands of README and docs that can run here. The test replaces the reader's own names.
RUNNABLE = [
    "weir ping smp://…",
    "weir smp check --address smp://…",
    "weir service list --config weir.toml",
    "weir service drift --config weir.toml",
    "weir smp config list",
]


@pytest.mark.parametrize("command", RUNNABLE)
def test_commands_of_the_docs_run(up: Up, command: str) -> None:
    assert any(command in page.read_text() for page in PAGES), f"no page mentions {command}"
    words = command.replace("smp://…", up.address).replace("--config weir.toml", f"--home {up.home}").split()[1:]
    done = subprocess.run([str(BIN / "weir"), *words], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr


def test_the_toml_of_the_docs_is_valid(tmp_path: Path) -> None:
    for path in PAGES:
        for number, block in enumerate(re.findall(r"^```toml\n(.*?)^```", path.read_text(), re.MULTILINE | re.DOTALL)):
            file = tmp_path / f"{path.stem}{number}.toml"
            file.write_text(block)
            done = subprocess.run(
                [str(BIN / "weir"), "smp", "config", "check", str(file)],
                capture_output=True,
                text=True,
                timeout=30,
                check=False,
            )
            assert done.returncode == 0, f"{path.name}: {done.stderr}"


def test_tests_that_are_named_exist() -> None:
    """`tests/file.py::test_name`, and test names alone, in any page."""
    code = {path: path.read_text() for path in (ROOT / "tests").rglob("*.py")}
    for page in PAGES:
        for file, name in re.findall(r"`(?:(tests/[\w/]+\.py)::)?(test_\w+)`", page.read_text()):
            places = [text for path, text in code.items() if not file or path == ROOT / file]
            assert any(f"def {name}(" in text for text in places), f"{page.name}: {file} {name}"


def test_help_lists_every_target() -> None:
    done = subprocess.run(["make", "help"], cwd=ROOT, capture_output=True, text=True, timeout=30, check=True)
    targets = "setup run test bench vectors fuzz fuzz-edge soak lock test-cluster image"
    targets += " setup-pipeline test-pipeline pipeline-demo"
    for target in targets.split():
        assert f"make {target} " in done.stdout
