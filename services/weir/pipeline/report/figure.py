"""The parts of a page: sections with figures. A figure has a finding, a plot, its summary in words, and a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

Spec = Mapping[str, Any]
"""A plot as Vega-Lite declares it."""


@dataclass(frozen=True, slots=True)
class Table:
    """The numbers of a plot, as text. The first column names the row. The rows of a plot over time begin at `start` and
    are `step` apart, in ms since the epoch: the cursor of the plot reads them."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    start: int = 0
    step: int = 0


@dataclass(frozen=True, slots=True)
class Key:
    """An entry of a legend: the colour's name in report.css, and how the mark looks."""

    label: str
    colour: str
    mark: Literal["line", "dashed", "dotted", "area", "band"] = "line"


@dataclass(frozen=True, slots=True)
class Figure:
    name: str
    """Part of the id in the page: lower case, no spaces."""
    finding: str
    summary: str
    """The plot in words, for those who do not see it, and what the numbers mean."""
    table: Table
    spec: Spec | None = None
    """None: the table says everything, and is shown at once."""
    unit: str = ""
    keys: tuple[Key, ...] = ()
    wide: bool = False
    choices: tuple[tuple[str, Figure], ...] = ()
    """Figures of the same kind with their labels; one of them is shown."""


@dataclass(frozen=True, slots=True)
class Section:
    name: str
    title: str
    figures: tuple[Figure, ...]


@dataclass(frozen=True, slots=True)
class Tile:
    """A number that stands for a section, at the top of a router's part."""

    label: str
    value: str
    note: str
    tone: str = ""  # "", good, bad


@dataclass(frozen=True, slots=True)
class Note:
    """One sentence about something that needs attention. The part in front is when."""

    when: str
    text: str


@dataclass(frozen=True, slots=True)
class Chapter:
    """One router."""

    name: str
    title: str
    kind: str
    tiles: tuple[Tile, ...]
    notes: tuple[Note, ...]
    sections: tuple[Section, ...]
    quiet: str = ""
    """The sentence when there are no notes."""


@dataclass(frozen=True, slots=True)
class Report:
    title: str
    subtitle: str
    chapters: tuple[Chapter, ...]
    overview: Table | None = None
    footnotes: tuple[str, ...] = field(default=())


def figures(sections: Sequence[Section]) -> list[Figure]:
    """All figures, those that can be chosen as well."""
    return [
        each
        for section in sections
        for figure in section.figures
        for each in ([chosen for _, chosen in figure.choices] or [figure])
    ]
