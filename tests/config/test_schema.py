"""A program's settings: defaults, file, environment, and every problem at once. On a small program of its own."""

from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from weir.config import kinds
from weir.config.file import IniNames, Problem
from weir.config.kinds import setting
from weir.config.schema import ConfigError, Places, Schema


@dataclass(frozen=True)
class Range:
    low: int = setting(kinds.integer(), 1, "lowest")
    high: int = setting(kinds.integer(), 9, "highest")


@dataclass(frozen=True)
class Files:
    data: Path = setting(kinds.PATH, Path("data"), "where data is")


@dataclass(frozen=True)
class Config:
    range: Range = field(default_factory=Range)
    files: Files = field(default_factory=Files)


def check(config: Config, places: Places) -> list[Problem]:
    low, high = config.range.low, config.range.high
    return [places.problem("range", "low", "low: must not be above high")] if low > high else []


def resolve(config: Config, base: Path) -> Config:
    return replace(config, files=Files(base / config.files.data))


SCHEMA = Schema(Config, "DEMO", IniNames({}, lambda raw: None), check, resolve, frozenset({"DEMO_FILES_OTHER"}))


def problems(path: Path | None, environ: dict[str, str]) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        SCHEMA.load(path, environ)
    return [str(problem) for problem in caught.value.problems]


def test_the_environment_wins_over_the_file_and_the_file_over_the_defaults(tmp_path: Path) -> None:
    path = tmp_path / "demo.toml"
    path.write_text("[range]\nlow = 2\nhigh = 8\n")
    config = SCHEMA.load(path, {"DEMO_RANGE_HIGH": "7"})
    assert config == Config(Range(2, 7), Files(tmp_path / "data"))
    assert SCHEMA.given(path, {"DEMO_FILES_DATA": "x"}) == {("range", "low"), ("range", "high"), ("files", "data")}


def test_a_value_may_be_in_a_file_of_its_own(tmp_path: Path) -> None:
    secret = tmp_path / "low"
    secret.write_text("3\n")
    assert SCHEMA.load(None, {"DEMO_RANGE_LOW_FILE": str(secret)}).range.low == 3


def test_every_problem_is_reported_at_once(tmp_path: Path) -> None:
    path = tmp_path / "demo.toml"
    path.write_text("[range]\nlow = 10\nmiddle = 5\n[shape]\nround = 1\n")
    assert problems(path, {"DEMO_FILES_DATA": ""}) == [
        f"{path}:3: unknown key middle in [range] (known: low, high)",
        f"{path}:5: unknown section [shape]",
        "environment: DEMO_FILES_DATA: expected a path",
        f"{path}:2: low: must not be above high",
    ]


def test_a_rule_that_a_default_breaks_names_the_section() -> None:
    assert problems(None, {"DEMO_RANGE_HIGH": "0"}) == ["defaults: [range] low: low: must not be above high"]


def test_variables_that_look_like_settings_are_found_and_ignored() -> None:
    environ = {"DEMO_RANGE_HIHG": "1", "DEMO_FILES_OTHER": "x", "DEMO_X": "y", "DEMO_RANGE_LOW_FILE": "/x"}
    (found,) = SCHEMA.unknown_in_environment(environ)
    assert str(found) == "environment: unknown setting DEMO_RANGE_HIHG (did you mean DEMO_RANGE_HIGH?)"
    assert SCHEMA.load(None, {"DEMO_RANGE_HIHG": "1"}).range == Range()


def test_settings_are_found_by_name() -> None:
    assert [(section, item.name) for section, item in SCHEMA.settings()] == [
        ("range", "low"),
        ("range", "high"),
        ("files", "data"),
    ]
    found = SCHEMA.find("range", "high")
    assert found is not None and found.default == 9
    assert SCHEMA.find("range", "data") is None


@dataclass(frozen=True)
class Secret:
    word: str | None = setting(kinds.TEXT, None, "the word")
    word_file: Path | None = setting(kinds.PATH, None, "file with the word, which the program reads itself")


@dataclass(frozen=True)
class SecretConfig:
    secret: Secret = field(default_factory=Secret)


def test_a_file_that_is_a_setting_of_its_own_is_left_to_the_program(tmp_path: Path) -> None:
    schema = Schema(SecretConfig, "DEMO", IniNames({}, lambda raw: None), lambda *_: [], lambda config, _: config)
    file = tmp_path / "none"
    assert schema.load(None, {"DEMO_SECRET_WORD_FILE": str(file)}).secret == Secret(None, file)
