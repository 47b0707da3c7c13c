"""The exception with which a command fails: one clear line for people instead of a traceback."""

from __future__ import annotations

import os


class Fail(Exception):
    """Raised by a command. `weir` prints the text and exits with the code."""

    def __init__(self, text: str, code: int = 1) -> None:
        super().__init__(text)
        self.code = code


def os_error(path: object, error: OSError) -> Fail:
    """Make a failure that says `path: reason`."""
    text = os.strerror(error.errno) if error.errno else str(error)
    return Fail(f"{path}: {text.lower()}")
