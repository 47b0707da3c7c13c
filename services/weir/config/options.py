"""Options of commands. A number is read as a setting of its kind is, and a value that cannot be used is one line."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import NoReturn, TypeVar

from weir.config import kinds

T = TypeVar("T")


class Parser(argparse.ArgumentParser):
    """Refuses a command line in one line, without the list of all options."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: error: {message} (`{self.prog} --help` explains)\n")


def of_kind(kind: kinds.Kind[T]) -> Callable[[str], T]:
    """Make the `type` of an option from a kind of setting."""

    def read(text: str) -> T:
        try:
            return kind.read(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(f"{text!r}: {error}") from None

    return read


def whole(low: int, high: int) -> Callable[[str], int]:
    return of_kind(kinds.integer(low, high))


def seconds(low: float = 0.1, high: float = 86400.0) -> Callable[[str], float]:
    return of_kind(kinds.number(low, high))


port = of_kind(kinds.PORT)
