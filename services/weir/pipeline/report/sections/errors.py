"""Commands that were answered with an error, by the error's name."""

from __future__ import annotations

from typing import Final

from weir.pipeline.report import charts, units
from weir.pipeline.report.charts import Line
from weir.pipeline.report.figure import Figure, Key, Section, Table
from weir.pipeline.report.gold import hour
from weir.pipeline.report.part import Part, added
from weir.pipeline.report.sections.common import highest, named, over_time, time_name, total
from weir.pipeline.tables.columns import COMMANDS, TRAFFIC
from weir.telemetry.rollups.fields import OUTCOMES

_OK: Final = "OK"
_NAMED: Final = 4
_COLOURS: Final = ("c2", "c1", "c3", "c4", "c5")
_OTHERS: Final = "others"
_LISTED: Final = 12


def section(part: Part) -> Section | None:
    commands = part.shown(part.numbers(TRAFFIC, "commands_total", part.span.grain))
    rows = list(part.within(COMMANDS))
    if not total(commands) or not rows:
        return None
    counts = {name: value for name, value in _by_outcome(part).items() if any(value.values())}
    figures = [_plot(part, counts, total(commands))]
    return Section("errors", "Errors", (*figures, _commands(part)))


def _by_outcome(part: Part) -> dict[str, dict[int, float]]:
    found: dict[str, dict[int, float]] = {}
    for row in part.within(COMMANDS):
        if row["outcome"] != _OK:
            times = found.setdefault(str(row["outcome"]), {})
            at = hour(row["at"])
            times[at] = times.get(at, 0.0) + float(row["count"])
    return found


def _plot(part: Part, counts: dict[str, dict[int, float]], commands: float) -> Figure:
    sums = {name: sum(times.values()) for name, times in counts.items()}
    ordered = sorted(sums, key=lambda name: sums[name], reverse=True)
    shown = {name: counts[name] for name in ordered[:_NAMED]}
    rest = ordered[_NAMED:]
    if rest:
        shown[_OTHERS] = added((at, value) for name in rest for at, value in counts[name].items())
    lines = [
        Line(Key(name, colour, "area"), part.shown(times, zero=True))
        for (name, times), colour in zip(shown.items(), _COLOURS, strict=False)
    ]
    failed = sum(sums.values())
    times, step = part.span.times, part.span.step
    all_errors = part.shown(added((at, v) for each in counts.values() for at, v in each.items()), zero=True)
    if not failed:
        finding, summary = "No command was refused", f"{units.count(commands)} commands, all answered without an error."
    else:
        worst = ordered[0]
        finding = f"{units.share(failed / commands)} of commands were refused, most with {worst}"
        summary = f"{worst}: {OUTCOMES.get(worst, 'an error')}; {units.count(sums[worst])} times."
        top = highest(times, all_errors)
        if top:
            summary += f" Most errors were on {time_name(top[0], step)}: {units.count(top[1])}."
    return Figure(
        name="errors",
        finding=finding,
        summary=summary,
        unit=f"commands with an error {named(part)}",
        keys=tuple(line.key for line in lines),
        spec=charts.stacked(times, lines, part.gaps, part.span.end, step, low=True) if failed else None,
        table=over_time(part, times, step, [(line.key.label, line.values, units.exact) for line in lines]),
        wide=True,
    )


def _commands(part: Part) -> Figure:
    """Each command with its errors, those with the most errors first."""
    found: dict[str, dict[str, float]] = {}
    for row in part.within(COMMANDS):
        outcomes = found.setdefault(str(row["command"]), {})
        outcomes[str(row["outcome"])] = outcomes.get(str(row["outcome"]), 0.0) + float(row["count"])
    rows = []
    for command, outcomes in found.items():
        all_of_it = sum(outcomes.values())
        errors = all_of_it - outcomes.get(_OK, 0.0)
        most = max((name for name in outcomes if name != _OK), key=lambda name: outcomes[name], default="")
        rows.append((errors, all_of_it, command, most))
    rows.sort(key=lambda row: (row[0], row[1]), reverse=True)
    busiest = max(rows, key=lambda row: row[1])
    return Figure(
        name="commands",
        finding=f"{busiest[2]} is the most frequent command",
        summary=f"The {min(_LISTED, len(rows))} commands with the most errors. An error need not be a fault: clients "
        "also ask for queues that were deleted.",
        table=Table(
            ("Command", "Answers", "Errors", "Share", "Mostly"),
            tuple(
                (name, units.exact(of), units.exact(errors), units.share(errors / of if of else None), most or "–")
                for errors, of, name, most in rows[:_LISTED]
            ),
        ),
        wide=True,
    )
