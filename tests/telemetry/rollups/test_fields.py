"""The declared names are those of the wire's commands and errors, and of the routers' counters."""

from collections.abc import Iterator
from dataclasses import fields

import pytest

from weir.notifier.stats import Stats as NtfStats
from weir.notifier.subscriber.state import SubscriberStats
from weir.notifier.surface.metrics import OUTCOMES as PUSH_OUTCOMES
from weir.notifier.surface.metrics import PROVIDERS
from weir.router.stats import Stats as SmpStats
from weir.runtime.counters import Counters
from weir.telemetry.metrics import ENDED_CONNECTIONS
from weir.telemetry.rollups.fields import (
    COMMANDS,
    EVENTS,
    GAUGES,
    HISTOGRAMS,
    OUTCOMES,
    PROGRAMS,
    SERVICE,
    UNREADABLE,
    Field,
)
from weir.telemetry.rollups.record import ServiceRollup
from weir.wire.errors import Simple
from weir.wire.ntf.types import DECLARATIONS as NTF
from weir.wire.smp.commands import DECLARATIONS as SMP

_COMPOSED = {"BLOCKED", "CMD", "NAME", "PROXY", "STORE"}  # errors with parameters: their first words
_ALL_EDGES = {
    "redis_timeout",
    "redis_disconnected",
    "redis_not_durable",
    "redis_full",
    "redis_failed",
    "errors_logged",
    *(number for _, number in ENDED_CONNECTIONS.samples),
}
# Histograms of /metrics: a rollup has better ones.
_HISTOGRAMS = ("msgRecvAckTimes", "subsToSoksMs", "subsToAllsMs", "pushMs")


def counters(stats: Counters) -> Iterator[str]:
    """The names of all counters, but histograms."""
    for item in fields(stats):  # type: ignore[arg-type]
        name, value = item.name, getattr(stats, item.name)
        if isinstance(value, Counters):
            yield from (f"{name}_{inner}" for inner in counters(value))
        elif isinstance(value, int) and not any(name == f"{each}Sum" for each in _HISTOGRAMS):
            yield name
        elif isinstance(value, dict) and name not in _HISTOGRAMS:
            yield from {
                "pushes": [f"pushes_{provider}_{outcome}" for provider in PROVIDERS for outcome in PUSH_OUTCOMES],
                "pushLimited": [f"pushLimited_{provider}" for provider in PROVIDERS],
            }.get(name, [name])  # a counter by host is added up: a host is no declared name


@pytest.mark.parametrize(("program", "declarations"), [("smp", SMP), ("ntf", NTF)])
def test_commands_are_those_of_the_wire(program: str, declarations: dict[type, object]) -> None:
    assert set(COMMANDS[program]) == {kind.__name__ for kind in declarations} | {UNREADABLE}


def test_outcomes_are_the_errors_of_the_wire() -> None:
    assert set(OUTCOMES) == {"OK", "OTHER"} | {error.value for error in Simple} | _COMPOSED


@pytest.mark.parametrize(("program", "stats"), [("smp", [SmpStats()]), ("ntf", [NtfStats(), SubscriberStats()])])
def test_every_counter_is_declared(program: str, stats: list[Counters]) -> None:
    assert set(EVENTS[program]) == {name for each in stats for name in counters(each)} | _ALL_EDGES


def test_every_field_of_a_service_is_declared() -> None:
    assert list(SERVICE) == [item.name for item in fields(ServiceRollup)]


@pytest.mark.parametrize("program", PROGRAMS)
def test_every_name_is_explained(program: str) -> None:
    tables = [EVENTS[program], GAUGES[program], HISTOGRAMS[program]]
    every: list[Field] = [field for table in tables for field in table.values()]
    assert all(field.unit and field.text for field in every)
    assert all(COMMANDS[program].values()) and all(OUTCOMES.values())
    names = [name for table in tables for name in table]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("program", PROGRAMS)
def test_numbers_of_the_fleet_are_named_so(program: str) -> None:
    fleet = {name for name, field in GAUGES[program].items() if field.fleet}
    assert {name for name in GAUGES[program] if name.startswith("fleet_")} < fleet
