"""Kinds of values: what each reads, shows and writes."""

from pathlib import Path
from typing import Any

import pytest

from weir.config import kinds
from weir.config.kinds import Kind, show_duration


@pytest.mark.parametrize(
    ("kind", "raw", "value", "shown", "plain"),
    [
        (kinds.BOOL, "yes", True, "on", True),
        (kinds.BOOL, False, False, "off", False),
        (kinds.integer(1, 9), " 7 ", 7, "7", 7),
        (kinds.number(0, 1), "0.25", 0.25, "0.25", 0.25),
        (kinds.DURATION, "90s", 90.0, "90s", "90s"),
        (kinds.DURATION, 86400, 86400.0, "1d", "1d"),
        (kinds.SIZE, "64MiB", 64 << 20, "64MiB", "64MiB"),
        (kinds.TEXT, " a b ", "a b", "a b", "a b"),
        (kinds.COUNTRY, "de", "DE", "DE", "DE"),
        (kinds.PATH, "/x/y", Path("/x/y"), "/x/y", "/x/y"),
        (kinds.PORTS, "5223, 443", (5223, 443), "5223,443", [5223, 443]),
        (kinds.ADDRESSES, ["a", "b"], ("a", "b"), "a,b", ["a", "b"]),
        (kinds.choice("public", "onion"), "ONION", "onion", "onion", "onion"),
    ],
)
def test_a_value_is_read_shown_and_written(kind: Kind[Any], raw: object, value: Any, shown: str, plain: Any) -> None:
    assert kind.read(raw) == value
    assert kind.show(value) == shown
    assert kind.plain(value) == plain
    assert kind.read(shown) == kind.read(plain) == value


@pytest.mark.parametrize(
    ("kind", "raw", "says"),
    [
        (kinds.BOOL, "perhaps", "expected on or off"),
        (kinds.integer(1, 9), True, "expected a whole number"),
        (kinds.integer(1, 9), "10", "expected a number from 1 to 9"),
        (kinds.number(0, 1), "x", "expected a number"),
        (kinds.DURATION, "21 moons", "expected a time"),
        (kinds.SIZE, "64KB", "expected a size"),
        (kinds.TEXT, 3, "expected text"),
        (kinds.PASSWORD, "a b", "expected printable ASCII"),
        (kinds.SOCKS, "host:99999", r"expected \[user:password@\]host:port"),
    ],
)
def test_a_value_that_does_not_fit_says_what_was_expected(kind: Kind[Any], raw: object, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        kind.read(raw)


@pytest.mark.parametrize(("seconds", "shown"), [(0, "0ms"), (0.3, "300ms"), (90, "90s"), (3600, "1h"), (86400, "1d")])
def test_a_time_is_shown_in_its_largest_unit(seconds: float, shown: str) -> None:
    assert show_duration(seconds) == shown
