"""Reading one file, TOML or ini, with a line for every setting and every problem."""

from pathlib import Path

import pytest

from weir.config.file import IniNames, Problem, Raw, Renamed, read_config_file, read_ini

INI = IniNames(
    {("store", "days"): Renamed("queues", "ttl", "d")},
    lambda raw: "not needed" if raw.key == "log" else None,
)


def read(path: Path, text: str) -> tuple[list[Raw], list[str]]:
    path.write_text(text)
    problems: list[Problem] = []
    return read_config_file(path, INI, problems), [str(problem) for problem in problems]


def test_toml_settings_have_their_lines(tmp_path: Path) -> None:
    path = tmp_path / "x.toml"
    raws, problems = read(path, '[a]\nx = 1\n\n[b]\n"y" = "z"\n[empty]\n')
    assert problems == []
    assert [(raw.section, raw.key, raw.value, raw.line) for raw in raws] == [
        ("a", "x", 1, 2),
        ("b", "y", "z", 5),
        ("empty", "", "", 6),
    ]


@pytest.mark.parametrize(
    ("text", "problem"),
    [("x = 1\n", "1: x is outside of a [section]"), ("[a]\nx = y\n", "2: invalid value")],
)
def test_what_is_not_a_setting_is_named_with_its_line(tmp_path: Path, text: str, problem: str) -> None:
    path = tmp_path / "x.toml"
    assert read(path, text) == ([], [f"{path}:{problem}"])


def test_an_ini_is_renamed_and_shows_its_own_names(tmp_path: Path) -> None:
    (raw,), problems = read(tmp_path / "x.ini", "; comment\n[STORE]\ndays: 3\nlog = on\n")
    assert problems == []
    assert (raw.section, raw.key, raw.value, raw.line) == ("queues", "ttl", "3d", 3)
    assert (raw.shown_section, raw.shown_key) == ("STORE", "days")


def test_settings_of_an_ini_without_a_use_are_listed_apart() -> None:
    problems: list[Problem] = []
    known, left_out = read_ini("x.ini", "[STORE]\nlog = on\nnonsense\n", INI, problems)
    assert known == [] and [raw.key for raw in left_out] == ["log"]
    assert [str(problem) for problem in problems] == ["x.ini:3: expected [SECTION] or key = value"]
