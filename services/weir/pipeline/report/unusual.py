"""Finds what is unusual this week: hours that differ much from the same hour of earlier weeks.

A number is compared on a logarithmic scale, as a ratio, with the median of the same hour in up to six earlier weeks.
While there are fewer than three such hours, the same hour of all other days counts, working days and weekends apart.
The level of the whole week is taken out first, so a router that grows is not unusual in every hour. How far hours
differ ordinarily is the median distance of this week's hours, which a few bad hours do not move. Counts have their
counting error in addition, so a few more of something rare are nothing.

An hour has to be far outside (8 ordinary distances, or 5 when the next hour is as well), and the ratio large enough for
people to care. What happens at the same time is one finding: an incident shows in many numbers. There are no findings
without at least two days of hours that can be compared.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import exp, log, sqrt
from statistics import median
from typing import Final, Literal

WEEK: Final = 168
WEEKS_BEFORE: Final = 6
MOST: Final = 6

_DAY: Final = 24
_THURSDAY: Final = 3  # the epoch's day of the week
_ENOUGH: Final = 3
_LEAST_HOURS: Final = 48
_ALONE: Final = 8.0
_TOGETHER: Final = 5.0
_MAD: Final = 1.4826
_LEAST_DISTANCE: Final = 0.02  # a number that hardly ever changes: 2 % is its ordinary distance
_HANDFUL: Final = 5.0
_APART: Final = 1  # episodes at most so many hours apart are one finding


@dataclass(frozen=True, slots=True)
class Series:
    """A number by hour. Hours are whole hours since the epoch; an hour without data is absent."""

    name: str
    values: Mapping[int, float]
    kind: Literal["count", "level", "time"] = "count"
    """Only counts have a counting error."""
    only_more: bool = False
    """Less of it is good news: errors, times."""
    least_ratio: float = 1.5
    weight: float = 1.0
    """How much people care, when findings are ranked."""


@dataclass(frozen=True, slots=True)
class Episode:
    """Hours in a row in which one number is unusual in one direction. `end` is the first hour after them."""

    series: Series
    start: int
    end: int
    ratio: float
    value: float
    usual: float
    score: float


@dataclass(frozen=True, slots=True)
class Finding:
    """Episodes of the same time. The most important is first."""

    start: int
    end: int
    episodes: tuple[Episode, ...]

    @property
    def score(self) -> float:
        return sum(episode.score for episode in self.episodes)


@dataclass(frozen=True, slots=True)
class _Hour:
    at: int
    value: float
    usual: float
    ratio: float  # logarithm, without the level of the week
    distance: float  # in ordinary distances


def find(series: Iterable[Series], last: int) -> list[Finding]:
    """The findings of the week that ends with the hour `last`, the most important first."""
    episodes = sorted((episode for each in series for episode in _episodes(each, last)), key=lambda e: e.start)
    groups: list[list[Episode]] = []
    end = 0
    for episode in episodes:
        if groups and episode.start <= end + _APART:
            groups[-1].append(episode)
        else:
            groups.append([episode])
            end = 0
        end = max(end, episode.end)
    findings = [
        Finding(
            min(e.start for e in group),
            max(e.end for e in group),
            tuple(sorted(group, key=lambda e: e.score, reverse=True)),
        )
        for group in groups
    ]
    return sorted(findings, key=lambda finding: finding.score, reverse=True)[:MOST]


def _episodes(series: Series, last: int) -> list[Episode]:
    hours = _hours(series, last)
    least = log(series.least_ratio)
    runs: list[list[_Hour]] = []
    for hour in hours:
        if abs(hour.distance) < _TOGETHER or abs(hour.ratio) < least or (series.only_more and hour.ratio < 0):
            continue
        newest = runs[-1][-1] if runs else None
        if newest and newest.at == hour.at - 1 and (newest.distance > 0) == (hour.distance > 0):
            runs[-1].append(hour)
        else:
            runs.append([hour])
    return [_episode(series, run) for run in runs if len(run) > 1 or abs(run[0].distance) >= _ALONE]


def _episode(series: Series, run: Sequence[_Hour]) -> Episode:
    worst = max(run, key=lambda hour: abs(hour.ratio))
    return Episode(
        series=series,
        start=run[0].at,
        end=run[-1].at + 1,
        ratio=exp(worst.ratio),
        value=worst.value,
        usual=worst.usual,
        score=series.weight * sum(min(abs(hour.ratio), 5.0) for hour in run),
    )


def _hours(series: Series, last: int) -> list[_Hour]:
    """The hours of the week that can be compared, with their distances."""
    extra = _HANDFUL if series.kind == "count" else 0.0
    found: list[tuple[int, float, float, float]] = []
    for at in range(last - WEEK + 1, last + 1):
        value = series.values.get(at)
        usual = _usual(series.values, at, last)
        if value is None or usual is None or usual + extra <= 0 or value + extra <= 0:
            continue
        found.append((at, value, usual, log((value + extra) / (usual + extra))))
    if len(found) < _LEAST_HOURS:
        return []
    level = median(ratio for *_, ratio in found)
    ordinary = max(_LEAST_DISTANCE, _MAD * median(abs(ratio - level) for *_, ratio in found))
    hours = []
    for at, value, usual, ratio in found:
        expected = usual * exp(level)
        counting = 1 / (expected + extra) if series.kind == "count" else 0.0
        distance = (ratio - level) / sqrt(ordinary**2 + counting)
        hours.append(_Hour(at, value, expected, ratio - level, distance))
    return hours


def _usual(values: Mapping[int, float], at: int, last: int) -> float | None:
    """The median of the same hour of earlier weeks, or of other days. None: there are too few."""
    weeks = [values[at - week * WEEK] for week in range(1, WEEKS_BEFORE + 1) if at - week * WEEK in values]
    if len(weeks) >= _ENOUGH:
        return median(weeks)
    days = [
        values[hour]
        for hour in range(at % _DAY + (last - 2 * WEEK) // _DAY * _DAY, last + 1, _DAY)
        if hour in values and hour != at and _is_weekend(hour) == _is_weekend(at)
    ]
    return median(days) if len(days) >= _ENOUGH else None


def _is_weekend(hour: int) -> bool:
    return (hour // _DAY + _THURSDAY) % 7 >= 5
