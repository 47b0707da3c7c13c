"""Specifications of plots are data: what they hold, and that colours are names of the style sheet."""

import json
import re
from importlib import resources
from typing import Any

from weir.pipeline.report import charts
from weir.pipeline.report.charts import Ahead, Cell, Line, Row
from weir.pipeline.report.figure import Key, Spec

_MS = 3_600_000


def _all() -> dict[str, Spec]:
    times, values = range(100, 104), [1.0, None, 3.0, 4.25]
    found = [Line(Key("one", "c1", "area"), values), Line(Key("two", "c2", "dashed"), values, stepped=True)]
    return {
        "lines": charts.lines(times, found, [(101, 102)], 104),
        "stacked": charts.stacked(times, found, [], 104, 1),
        "heat": charts.heat([Cell(100, 20, 0.25), Cell(100, 21, 0.75)], 1, found, times, [(101, 102)], (100, 104)),
        "ranked": charts.ranked([Row("a", 4, "4"), Row("b", 1, "1")], "c3"),
        "forecast": charts.forecast(times, values, [Ahead(104, 1, 2, 3), Ahead(128, 2, 3, 4)], 5.0, "limit: 5"),
    }


def _layers(spec: Any, field: str) -> list[Any]:
    return [layer for layer in spec["layer"] if field in str(layer["encoding"])]


def test_specifications_are_json() -> None:
    for spec in _all().values():
        assert json.loads(json.dumps(spec)) == spec


def test_colours_are_declared_in_light_and_dark() -> None:
    style = resources.files("weir.pipeline.report").joinpath("report.css").read_text()
    light, dark = style.split("@media (prefers-color-scheme: dark)")[:2]
    used = set(re.findall(r"var\((--[a-z0-9]+)\)", json.dumps([_all(), charts.CONFIG])))
    assert {"--c1", "--gap", "--heat0", "--heat6", "--bad"} <= used
    for name in used:
        assert f"{name}: #" in light and f"{name}: #" in dark


def test_gaps_are_null_and_grey_and_never_stacked_to_zero() -> None:
    spec: Any = _all()["lines"]
    column = [1, None, 3, 4.25]
    assert spec["data"]["values"] == [{"t": [(100 + n) * _MS for n in range(4)], "a": column, "b": column}]
    [gap] = [layer for layer in spec["layer"] if layer["mark"].get("color") == "var(--gap)"]
    assert gap["data"]["values"] == [{"t": 101 * _MS, "u": 102 * _MS}]
    assert all(layer["encoding"]["y"]["stack"] is None for layer in _layers(spec, "'a'"))


def test_bars_stand_on_each_other() -> None:
    spec: Any = _all()["stacked"]
    assert spec["data"]["values"][0]["a"] == [1, 0, 3, 4.25]
    assert spec["data"]["values"][0]["b"] == [2, 0, 6, 8.5]


def test_plots_over_time_have_the_same_left_edge_and_span() -> None:
    for name in ("lines", "stacked", "heat", "forecast"):
        spec: Any = _all()[name]
        ends = [value["t"] for value in spec["layer"][0]["data"]["values"]]
        assert ends == [100 * _MS, (128 if name == "forecast" else 104) * _MS]
        for layer in _layers(spec, "minExtent"):
            axis = layer["encoding"]["y"]["axis"]
            assert axis["minExtent"] == axis["maxExtent"] == 52


def test_labels_of_a_logarithmic_axis() -> None:
    def ticks(*rows: int) -> list[float]:
        spec: Any = charts.heat([Cell(0, row, 1.0) for row in rows], 1, [], [0], [], (0, 1))
        values: list[float] = _layers(spec, "'log'")[0]["encoding"]["y"]["axis"]["values"]
        return values

    assert ticks(20, 39) == [1e4, 1e5, 1e6]
    assert ticks(20, 25) == [2e3, 5e3]


def test_a_limit_is_drawn_once() -> None:
    spec: Any = _all()["forecast"]
    assert [layer["data"]["values"] for layer in spec["layer"][-2:]] == [[{}], [{}]]
    assert spec["layer"][-1]["encoding"]["text"] == {"value": "limit: 5"}
