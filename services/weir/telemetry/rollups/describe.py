"""The declaration as text, for docs/pipeline.md."""

from collections.abc import Iterator, Mapping
from typing import TypeVar

from weir.telemetry.rollups.fields import COMMANDS, EVENTS, GAUGES, HISTOGRAMS, OUTCOMES, PROGRAMS, SERVICE

T = TypeVar("T")
_HEAD = ("| name | of | unit | meaning |", "|---|---|---|---|")


def markdown() -> Iterator[str]:
    """The lines of the tables of all names."""
    yield from ("**Commands.** The name of a count is `COMMAND.OUTCOME`.", "")
    yield from ("| command | of | meaning |", "|---|---|---|")
    for name, (programs, text) in _merged(COMMANDS).items():
        yield f"| `{name}` | {programs} | {text} |"
    yield from ("", "| outcome | meaning |", "|---|---|")
    yield from (f"| `{name}` | {text} |" for name, text in OUTCOMES.items())
    for title, tables in (
        ("**Events**, counted in the interval.", EVENTS),
        ("**Gauges**, as they are at its end. *Fleet*: of the whole router; one edge at a time reports it.", GAUGES),
        ("**Histograms** of what happened in the interval.", HISTOGRAMS),
    ):
        yield from ("", title, "", *_HEAD)
        for name, (programs, field) in _merged(tables).items():
            fleet = ", fleet" if field.fleet else ""
            yield f"| `{name}` | {programs}{fleet} | {field.unit} | {field.text} |"
    yield from ("", "**Services**, of an SMP router.", "", "| name | unit | meaning |", "|---|---|---|")
    yield from (f"| `{name}` | {field.unit} | {field.text} |" for name, field in SERVICE.items())


def _merged(tables: Mapping[str, Mapping[str, T]]) -> dict[str, tuple[str, T]]:
    """Every name once, with the programs that have it."""
    found: dict[str, tuple[str, T]] = {}
    for program in PROGRAMS:
        for name, value in tables[program].items():
            before = found.get(name)
            found[name] = (f"{before[0]}, {program}" if before else program, value)
    return found
