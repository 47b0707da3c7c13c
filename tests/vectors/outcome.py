"""A check: a name, and a function that raises `Mismatch` when the bytes differ."""

from collections.abc import Callable

Check = tuple[str, Callable[[], None] | None]
"""None in the second place: there is no check for the entry."""


class Mismatch(AssertionError):
    """Both sides, shortened."""


def _short(value: object) -> str:
    text = value.hex() if isinstance(value, bytes) else repr(value)
    return text if len(text) <= 400 else f"{text[:380]}… ({len(text)})"


def equal(got: object, expected: object) -> None:
    if got != expected:
        raise Mismatch(f"\n    got      {_short(got)}\n    expected {_short(expected)}")


def expect(condition: bool, what: str) -> None:
    if not condition:
        raise Mismatch(f"expected {what}")
