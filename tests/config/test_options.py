"""Options of commands: what cannot be used is refused in one line that names the range."""

import argparse
from collections.abc import Callable

import pytest

from weir.config.options import Parser, port, seconds, whole


@pytest.mark.parametrize(
    ("read", "text", "value"),
    [
        (whole(1, 10), "10", 10),
        (seconds(), "0.1", 0.1),
        (seconds(0), "0", 0.0),
        (port, "65535", 65535),
    ],
)
def test_what_is_in_range(read: Callable[[str], object], text: str, value: object) -> None:
    assert read(text) == value


@pytest.mark.parametrize(
    ("read", "text", "says"),
    [
        (whole(1, 10), "0", "'0': expected a number from 1 to 10"),
        (whole(1, 10), "11", "'11': expected a number from 1 to 10"),
        (whole(1, 10), "1.5", "'1.5': expected a whole number"),
        (whole(1, 10), "", "'': expected a whole number"),
        (seconds(), "-1", "'-1': expected a number from 0.1 to 86400"),
        (seconds(), "nan", "'nan': expected a number from 0.1 to 86400"),
        (seconds(), "inf", "'inf': expected a number from 0.1 to 86400"),
        (seconds(), "soon", "'soon': expected a number"),
        (port, "65536", "'65536': expected a number from 0 to 65535"),
    ],
)
def test_what_is_not(read: Callable[[str], object], text: str, says: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError) as refused:
        read(text)
    assert str(refused.value) == says


def test_a_refusal_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    parser = Parser(prog="weir fly")
    parser.add_argument("--height", type=whole(1, 10))
    with pytest.raises(SystemExit) as ended:
        parser.parse_args(["--height", "11"])
    assert ended.value.code == 2
    assert capsys.readouterr().err == (
        "weir fly: error: argument --height: '11': expected a number from 1 to 10 (`weir fly --help` explains)\n"
    )
