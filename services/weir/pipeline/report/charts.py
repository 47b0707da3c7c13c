"""Plots as Vega-Lite specifications: plain data, which the page draws.

Colours are CSS variables of report.css, so a plot follows the page from light to dark. Plots over time share the width
of their vertical axis, so they stand exactly below each other. A gap is a grey stretch without a line. The numbers are
columns, which the plot flattens into rows: that takes a third of the same rows in JSON.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from weir.pipeline.report.figure import Key, Spec
from weir.pipeline.report.gold import HOUR

MS: Final = HOUR * 1_000

FONT: Final = 'system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", sans-serif'
CONFIG: Final[Mapping[str, Any]] = {
    "background": None,
    "padding": 0,
    "autosize": {"type": "fit-x", "contains": "padding"},
    "font": FONT,
    "view": {"stroke": None},
    "axis": {
        "domain": False,
        "ticks": False,
        "gridColor": "var(--line)",
        "labelColor": "var(--quiet)",
        "labelFontSize": 12,
        "labelPadding": 8,
        "labelOverlap": True,
    },
}
"""The settings of all plots."""

DASHES: Final[Mapping[str, list[int]]] = {"line": [1, 0], "dashed": [6, 4], "dotted": [2, 3], "area": [1, 0]}
HEAT: Final = (0.005, 0.02, 0.05, 0.1, 0.2, 0.4)
"""Borders between the shades of a heat map, as shares of all values of one time."""
ROWS_PER_OCTAVE: Final = 2

_HEIGHT: Final = 220
_LOW: Final = 130
_HEAT_HEIGHT: Final = 260
_ROW: Final = 54
_AXIS: Final = 52
_COUNTS: Final = "format(datum.value, '~s')"
_DURATIONS: Final = (
    "datum.value >= 6e7 ? datum.value / 6e7 + ' min' : datum.value >= 1e6 ? datum.value / 1e6 + ' s' : "
    "datum.value >= 1e3 ? datum.value / 1e3 + ' ms' : datum.value + ' µs'"
)
_NAMED_DAYS: Final = 32
_LABEL: Final = 68  # the room of a label, in pixels
_DATE: Final = 80
_FEW: Final = 45
"""Up to this many times have a point each, so that a single time between gaps can be seen."""


class Line(NamedTuple):
    key: Key
    values: Sequence[float | None]
    stepped: bool = False
    """A value holds until the next one."""


class Row(NamedTuple):
    label: str
    value: float
    text: str


class Cell(NamedTuple):
    """A field of a heat map: its time, its row (half octaves above 1), and its share of the values of this time."""

    at: int
    row: int
    share: float


class Ahead(NamedTuple):
    """A forecast: an hour, with the middle and the band."""

    at: int
    low: float
    middle: float
    high: float


Gaps = Sequence[tuple[int, int]]


def colour(name: str) -> str:
    return f"var(--{name})"


def _rounded(value: float | None) -> float | int | None:
    """Six digits are more than a plot shows."""
    if value is None:
        return None
    short = float(f"{value:.6g}")
    return int(short) if short.is_integer() else short


def _columns(times: Sequence[float], columns: Sequence[Sequence[float | None]]) -> dict[str, Any]:
    """Data with the time as column t, and then a, b, c …"""
    values: dict[str, list[Any]] = {"t": [round(at * MS) for at in times]}
    for place, column in enumerate(columns):
        values[_letter(place)] = [_rounded(value) for value in column]
    return _flat(values)


def _flat(values: Mapping[str, Sequence[Any]]) -> dict[str, Any]:
    return {"data": {"values": [values]}, "transform": [{"flatten": list(values)}]}


def _letter(place: int) -> str:
    return chr(ord("a") + place)


def _time(start: float, end: float) -> dict[str, Any]:
    """The horizontal axis: days by name for some weeks, then dates, always in UTC."""
    days = max(2, int(end - start) // 24)
    return {
        "field": "t",
        "type": "temporal",
        "scale": {"type": "utc", "nice": False},
        "axis": {
            "format": "%a %-d" if days <= _NAMED_DAYS else "%-d %b",
            "tickCount": {"expr": f"min({days}, floor(width / {_LABEL if days <= _NAMED_DAYS else _DATE}))"},
            "title": None,
            "grid": False,
            "ticks": True,
            "tickSize": 18,
            "tickColor": "var(--line)",
            "labelAlign": "left",
            "labelPadding": -12,
            "labelOffset": 5,
            "labelFlush": False,
            "labelBound": True,
        },
    }


def _upward(field: str = "a") -> dict[str, Any]:
    """The vertical axis of counts, from zero."""
    axis = {"title": None, "tickCount": 4, "labelExpr": _COUNTS, "minExtent": _AXIS, "maxExtent": _AXIS}
    scale = {"zero": True, "nice": True}
    return {"field": field, "type": "quantitative", "stack": None, "scale": scale, "axis": axis}


def _strokes(found: Sequence[Line], x: Mapping[str, Any], y: Mapping[str, Any], count: int) -> list[dict[str, Any]]:
    """A layer for each line. A line whose mark is an area is filled as well."""
    layers: list[dict[str, Any]] = []
    for place, (key, _, stepped) in enumerate(found):
        shown = colour(key.colour)
        encoding = {"x": x, "y": {**y, "field": _letter(place)}}
        if key.mark == "area":
            fill = {"type": "area", "color": shown, "opacity": 0.16, "interpolate": "monotone"}
            layers.append({"mark": fill, "encoding": encoding})
        stroke = {"type": "line", "color": shown, "strokeWidth": 1.8, "strokeJoin": "round"}
        stroke["interpolate"] = "step-after" if stepped else "monotone"
        if key.mark in ("dashed", "dotted"):
            stroke["strokeDash"] = DASHES[key.mark]
        if count <= _FEW and not stepped:
            stroke["point"] = {"size": 22, "color": shown}
        layers.append({"mark": stroke, "encoding": encoding})
    return layers


def _gaps(gaps: Gaps, x: Mapping[str, Any]) -> list[dict[str, Any]]:
    if not gaps:
        return []
    return [
        {
            "data": {"values": [{"t": start * MS, "u": end * MS} for start, end in gaps]},
            "mark": {"type": "rect", "color": colour("gap")},
            "encoding": {"x": x, "x2": {"field": "u"}},
        }
    ]


def _plot(data: Mapping[str, Any], layers: Sequence[Mapping[str, Any]], height: int, span: tuple[float, float]) -> Spec:
    """The first layer says from when to when the plot is; it shows nothing."""
    ends = {"values": [{"t": at * MS} for at in span]}
    frame = {"data": ends, "mark": {"type": "rule", "opacity": 0}, "encoding": {"x": _time(*span)}}
    return {"width": "container", "height": height, **data, "layer": [frame, *layers]}


def lines(times: Sequence[int], found: Sequence[Line], gaps: Gaps, end: int, *, low: bool = False) -> Spec:
    """Counts over time."""
    x = _time(times[0], end)
    data = _columns(times, [line.values for line in found])
    strokes = _strokes(found, x, _upward(), len(times))
    return _plot(data, [*_gaps(gaps, x), *strokes], _LOW if low else _HEIGHT, (times[0], end))


def stacked(times: Sequence[int], found: Sequence[Line], gaps: Gaps, end: int, step: int, *, low: bool = False) -> Spec:
    """Counts over time on top of each other, a bar for each step."""
    x = _time(times[0], end)
    base = [0.0] * len(times)
    tops: list[Sequence[float | None]] = []
    for line in found:
        base = [below + (value or 0.0) for below, value in zip(base, line.values, strict=True)]
        tops.append([*base])
    bars = [
        {
            "transform": [{"calculate": f"datum.t + {step * MS}", "as": "u"}],
            "mark": {"type": "rect", "color": colour(line.key.colour)},
            "encoding": {
                "x": x,
                "x2": {"field": "u"},
                "y": _upward(_letter(place)),
                "y2": {"field": _letter(place - 1)} if place else {"datum": 0},
            },
        }
        for place, line in enumerate(found)
    ]
    return _plot(_columns(times, tops), [*_gaps(gaps, x), *bars], _LOW if low else _HEIGHT, (times[0], end))


def _decades(low: float, high: float) -> list[float]:
    """The labels of a logarithmic axis: 1, 10, 100, with 2 and 5 between them when there is room."""
    steps = (1, 2, 5) if high < low * 100 else (1,)
    values = [step * 10.0**power for power in range(13) for step in steps]
    return [value for value in values if low <= value <= high]


def heat(
    cells: Sequence[Cell], step: int, found: Sequence[Line], times: Sequence[float], gaps: Gaps, span: tuple[int, int]
) -> Spec:
    """Where the times of something lie, hour by hour: the darker, the more of them. Lines on top are quantiles."""
    x = _time(*span)
    octave = float(ROWS_PER_OCTAVE)
    low, high = 2 ** (min(c.row for c in cells) / octave), 2 ** ((max(c.row for c in cells) + 1) / octave)
    y = {
        "field": "v",
        "type": "quantitative",
        "scale": {"type": "log", "domain": [low, high], "nice": False},
        "axis": {
            "title": None,
            "values": _decades(low, high),
            "labelExpr": _DURATIONS,
            "minExtent": _AXIS,
            "maxExtent": _AXIS,
        },
    }
    marks = _flat(
        {"t": [c.at * MS for c in cells], "r": [c.row for c in cells], "n": [round(c.share, 4) for c in cells]}
    )
    shades = {
        "data": marks["data"],
        "transform": [
            *marks["transform"],
            {"calculate": f"datum.t + {step * MS}", "as": "u"},
            {"calculate": f"pow(2, datum.r / {ROWS_PER_OCTAVE})", "as": "v"},
            {"calculate": f"pow(2, (datum.r + 1) / {ROWS_PER_OCTAVE})", "as": "w"},
        ],
        "mark": {"type": "rect"},
        "encoding": {
            "x": x,
            "x2": {"field": "u"},
            "y": y,
            "y2": {"field": "w"},
            "color": {
                "field": "n",
                "type": "quantitative",
                "scale": {
                    "type": "threshold",
                    "domain": list(HEAT),
                    "range": [colour(f"heat{shade}") for shade in range(len(HEAT) + 1)],
                },
                "legend": None,
            },
        },
    }
    strokes = _strokes(found, x, y, len(times))
    data = _columns(times, [line.values for line in found])
    return _plot(data, [*_gaps(gaps, x), shades, *strokes], _HEAT_HEIGHT, span)


def ranked(rows: Sequence[Row], shade: str) -> Spec:
    """Bars below each other, with their label above and their number at the end: funnels and shares."""
    top = max((row.value for row in rows), default=0) or 1
    values = [
        {"n": place, "v": row.value, "full": top, "label": row.label, "text": row.text}
        for place, row in enumerate(rows)
    ]
    y = {"field": "n", "type": "ordinal", "axis": None, "scale": {"paddingInner": 0.62, "paddingOuter": 0.3}}
    x = {"field": "v", "type": "quantitative", "axis": None, "scale": {"domain": [0, top]}}
    words = {"type": "text", "baseline": "bottom", "fontSize": 13, "dy": -15, "color": colour("ink")}
    bar = {"type": "bar", "cornerRadius": 3}
    return {
        "width": "container",
        "height": _ROW * len(rows),
        "data": {"values": values},
        "layer": [
            {"mark": {**bar, "color": colour("track")}, "encoding": {"x": {**x, "field": "full"}, "y": y}},
            {"mark": {**bar, "color": colour(shade)}, "encoding": {"x": x, "y": y}},
            {
                "mark": {**words, "align": "left"},
                "encoding": {"x": {"value": 0}, "y": y, "text": {"field": "label"}},
            },
            {
                "mark": {**words, "align": "right", "fontWeight": 600},
                "encoding": {"x": {"value": "width"}, "y": y, "text": {"field": "text"}},
            },
        ],
    }


def forecast(
    times: Sequence[int], values: Sequence[float | None], ahead: Sequence[Ahead], limit: float | None, label: str
) -> Spec:
    """The past, the expected values, the band around them, and the limit if the limit is near."""
    end = ahead[-1].at if ahead else times[-1] + 24
    x, y = _time(times[0], end), _upward()
    stroke = {"type": "line", "strokeWidth": 2, "color": colour("c1")}
    layers: list[Mapping[str, Any]] = []
    if ahead:
        data = _columns(
            [e.at for e in ahead], [[e.middle for e in ahead], [e.low for e in ahead], [e.high for e in ahead]]
        )
        band = {"type": "area", "color": colour("c1"), "opacity": 0.18}
        layers += [
            {**data, "mark": band, "encoding": {"x": x, "y": _upward("b"), "y2": {"field": "c"}}},
            {**data, "mark": {**stroke, "strokeDash": DASHES["dashed"]}, "encoding": {"x": x, "y": y}},
        ]
    layers.append({"mark": stroke, "encoding": {"x": x, "y": y}})
    if limit is not None:
        at = {"datum": limit, "type": "quantitative"}
        once: dict[str, Any] = {"data": {"values": [{}]}}
        word = {"type": "text", "align": "left", "baseline": "bottom", "dx": 4, "dy": -4, "color": colour("bad")}
        layers += [
            {**once, "mark": {"type": "rule", "color": colour("bad"), "strokeWidth": 1.5}, "encoding": {"y": at}},
            {**once, "mark": word, "encoding": {"y": at, "x": {"value": 0}, "text": {"value": label}}},
        ]
    return _plot(_columns(times, [values]), layers, _HEIGHT, (times[0], end))
