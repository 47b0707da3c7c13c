"""Numbers for people: three digits that count, and a unit of the right size. Times are UTC."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import date, datetime
from typing import Final

NONE: Final = "–"
Format = Callable[[float | None], str]

_COUNTS: Final = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))
_SIZES: Final = ((2.0**50, "PiB"), (2.0**40, "TiB"), (2.0**30, "GiB"), (2.0**20, "MiB"), (2.0**10, "KiB"))
_DURATIONS: Final = ((86_400e6, "days"), (3_600e6, "h"), (60e6, "min"), (1e6, "s"), (1e3, "ms"))
_EXACT: Final = 10_000


def number(value: float) -> str:
    """At most three digits that count: 1.23, 12.3, 123."""
    size = abs(value)
    digits = 0 if size >= 99.95 or size == round(size) else 1 if size >= 9.995 else 2
    text = f"{value:.{digits}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _scaled(value: float, steps: Sequence[tuple[float, str]], smallest: str, gap: str) -> str:
    for unit, name in steps:
        if abs(value) >= unit * 0.9995:
            return f"{number(value / unit)}{gap}{name}"
    return f"{number(value)}{gap}{smallest}".rstrip()


def count(value: float | None) -> str:
    """Counts are exact below 10,000, and then 12.3k, 4.56M."""
    if value is None:
        return NONE
    if abs(value) < _EXACT:
        return f"{value:,.0f}" if value == round(value) or abs(value) >= 100 else number(value)
    return _scaled(value, _COUNTS, "", "")


def exact(value: float | None) -> str:
    """All digits, for tables."""
    return NONE if value is None else f"{value:,.0f}"


def decimal(value: float | None) -> str:
    return NONE if value is None else number(value)


def size(value: float | None) -> str:
    return NONE if value is None else _scaled(value, _SIZES, "bytes", " ")


def duration(microseconds: float | None) -> str:
    return NONE if microseconds is None else _scaled(microseconds, _DURATIONS, "µs", " ")


def share(value: float | None) -> str:
    """A share of 1 as per cent. The smallest shares stay readable: 0.004 %."""
    if value is None:
        return NONE
    percent = value * 100
    if percent == 0 or abs(percent) >= 1:
        return f"{number(percent)} %"
    return f"{float(f'{percent:.1g}'):f}".rstrip("0").rstrip(".") + " %"


def change(ratio: float) -> str:
    """A ratio in words: 1.31 is "31 % more"."""
    percent = round((ratio - 1) * 100)
    if percent == 0:
        return "about the same"
    if ratio >= 3:
        return f"{number(ratio)} times as much"
    return f"{abs(percent)} % {'more' if percent > 0 else 'less'}"


def plural(value: float, one: str, many: str = "") -> str:
    return f"{count(value)} {one if value == 1 else many or one + 's'}"


def day(at: date) -> str:
    return f"{at:%a} {at.day} {at:%b}"


def day_of_year(at: date) -> str:
    return f"{at.day} {at:%B} {at.year}"


def moment(at: datetime) -> str:
    return f"{day(at)} {at:%H:%M}"


def between(start: datetime, end: datetime) -> str:
    """A span in as few words as are needed: "Tue 14 Oct, 13:00 to 16:00"."""
    if start.date() == end.date():
        return f"{day(start)}, {start:%H:%M} to {end:%H:%M}"
    return f"{moment(start)} to {moment(end)}"


def listed(parts: Sequence[str]) -> str:
    """ "a", "a and b", "a, b and c"."""
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}" if parts else ""


def sentence(parts: Sequence[str], otherwise: str) -> str:
    """The parts as one sentence that begins with a capital letter."""
    if not parts:
        return otherwise
    text = "; ".join(parts)
    return f"{text[0].upper()}{text[1:]}."
