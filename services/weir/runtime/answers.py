"""Answers to clients' commands, counted by command and outcome.

Every answer adds one to `by_command`, which is all that the hot path does. An error is counted in addition, so the
answers without an error are the difference.
"""

from __future__ import annotations

from collections.abc import Iterable

from weir.telemetry.rollups.fields import UNREADABLE
from weir.wire.error_codec import encode_error
from weir.wire.errors import ErrorType


class Answers:
    __slots__ = ("_errors", "by_command")

    def __init__(self, commands: Iterable[type]) -> None:
        self.by_command = dict.fromkeys(commands, 0)
        self._errors: dict[tuple[str, str], int] = {}

    def failed(self, command: type, error: ErrorType) -> None:
        """An answer is an error. `by_command` counts it as well."""
        self._count(command.__name__, error)

    def unreadable(self, error: ErrorType) -> None:
        """A transmission is refused before its command begins. `by_command` does not count it."""
        self._count(UNREADABLE, error)

    def _count(self, command: str, error: ErrorType) -> None:
        key = command, encode_error(error).split(b" ", 1)[0].decode()
        self._errors[key] = self._errors.get(key, 0) + 1

    def totals(self) -> dict[str, int]:
        """Counts since the start: `SEND.OK`, `SEND.QUOTA`, `unreadable.CMD`. No zeros."""
        totals = {f"{command.__name__}.OK": count for command, count in self.by_command.items()}
        for (command, outcome), count in self._errors.items():
            totals[f"{command}.{outcome}"] = count
            if command != UNREADABLE:
                totals[f"{command}.OK"] -= count
        return {key: count for key, count in totals.items() if count}
