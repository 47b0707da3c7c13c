"""An outage of what a program depends on: an expected failure that every endpoint answers in the same words."""

from typing import NamedTuple


class Outage(NamedTuple):
    errors: tuple[type[Exception], ...]
    text: str
    """E.g. "Redis does not answer"."""
