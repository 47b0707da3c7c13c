"""How a command fails: with one line for people, never with a traceback."""

from __future__ import annotations

import os


class Fail(Exception):
    def __init__(self, text: str, code: int = 1) -> None:
        super().__init__(text)
        self.code = code


def os_error(path: object, error: OSError) -> Fail:
    """`path: what is wrong with it`."""
    text = os.strerror(error.errno) if error.errno else str(error)
    return Fail(f"{path}: {text.lower()}")
