"""The TOML writer, against the standard library's reader."""

import tomllib

import pytest

from weir.config.toml import TomlValue, toml_section, toml_value


@pytest.mark.parametrize(
    "value",
    [
        True,
        False,
        0,
        -3,
        0.5,
        "",
        "plain",
        'a "quoted" \\ word',
        "tab\tline\nnul\x00del\x7f",
        "é → 😀",
        [],
        [1, 2],
        ["a", "b"],
    ],
)
def test_what_is_written_is_read_again(value: TomlValue) -> None:
    assert tomllib.loads(f"x = {toml_value(value)}")["x"] == value


def test_a_section() -> None:
    lines = list(toml_section("transport", {"ports": [5223], "listen": "::1"}))
    assert lines == ["[transport]", "ports = [5223]", 'listen = "::1"', ""]
