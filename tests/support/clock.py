"""A clock that a test sets forward and back, for a process of its own (libfaketime, Debian package `faketime`)."""

from pathlib import Path

_LIBRARY = next(Path("/usr/lib").glob("*/faketime/libfaketime.so.1"), None)


class Clock:
    """The time of day of a process. The monotonic clock goes on, as it does when an administrator sets a clock."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._file = directory / "offset"
        self.set(0)

    def set(self, seconds: int) -> None:
        """How far the clock is ahead of the true time."""
        new = self._file.with_suffix(".new")
        new.write_text(f"{seconds:+d}s\n")
        new.rename(self._file)

    @property
    def environment(self) -> dict[str, str]:
        return {
            "LD_PRELOAD": str(_LIBRARY),
            "FAKETIME_TIMESTAMP_FILE": str(self._file),
            "FAKETIME_NO_CACHE": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        }

    def wrap(self, program: Path) -> Path:
        """A command that starts a program with this clock."""
        wrapper = self._directory / program.name
        variables = "".join(f"export {name}='{value}'\n" for name, value in self.environment.items())
        wrapper.write_text(f'#!/bin/sh\n{variables}exec {program} "$@"\n')
        wrapper.chmod(0o755)
        return wrapper
