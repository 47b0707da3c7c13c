"""Records as bytes: nothing gets lost, nothing undeclared gets in, and no record is larger than 2 KiB."""

import contextlib
import gzip
import json
import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.telemetry.rollups.strategies import rollups
from weir.telemetry.rollups.fields import COMMANDS, DRIFT, EVENTS, GAUGES, HISTOGRAMS, OUTCOMES, PROGRAMS, VERSION
from weir.telemetry.rollups.histogram import LAST, quantile
from weir.telemetry.rollups.record import (
    MAX_BYTES,
    Newer,
    Rollup,
    ServiceRollup,
    Unreadable,
    decode,
    encode,
    is_label,
    is_name,
)

ROLLUP = Rollup(
    "smp.example",
    "smp",
    "0123456789ab",
    7,
    1_790_000_000_000,
    60_000,
    {"SEND.OK": 20, "SEND.QUOTA": 1},
    {"msgSent": 20, "rcvServices_srvAssocNew": 2},
    {"connections": 3},
    {"send_stored": {-1: 1, 80: 18, 96: 1}},
    (ServiceRollup("push", "messages", 1, 500, {"ok": 1}, 40, {140: 1}),),
)


def as_sets(rollup: Rollup) -> Rollup:
    """Services have no order."""
    ordered = sorted(rollup.services, key=lambda s: (s.label, s.role, s.queues, s.delivered, repr(s)))
    return replace(rollup, services=tuple(ordered))


def sums(rollup: Rollup) -> dict[str, int]:
    """Everything that a record must not lose, whatever detail it loses."""
    totals = {name: sum(buckets.values()) for name, buckets in rollup.histograms.items() if buckets}
    totals |= dict(rollup.events)
    for key, count in rollup.commands.items():
        command = key.split(".")[0]
        totals[command] = totals.get(command, 0) + count
    for s in rollup.services:
        numbers = {"sessions": s.sessions, "queues": s.queues, "delivered": s.delivered, "alls": sum(s.alls.values())}
        for name, number in {**numbers, **s.drift}.items():
            totals[f"{s.role} {name}"] = totals.get(f"{s.role} {name}", 0) + number
    return {name: number for name, number in totals.items() if number}


@given(rollups())
def test_round_trip(rollup: Rollup) -> None:
    data = encode(rollup)
    assert len(data) <= MAX_BYTES
    assert as_sets(decode(data)) == as_sets(rollup)
    assert encode(decode(data)) == data


def test_the_form() -> None:
    """Stock tools read a record: gunzip and JSON."""
    assert json.loads(gzip.decompress(encode(ROLLUP))) == {
        "version": VERSION,
        "router": "smp.example",
        "program": "smp",
        "edge": "0123456789ab",
        "sequence": 7,
        "start": 1_790_000_000_000,
        "duration": 60_000,
        "commands": {"SEND.OK": 20, "SEND.QUOTA": 1},
        "events": {"msgSent": 20, "rcvServices_srvAssocNew": 2},
        "gauges": {"connections": 3},
        "histograms": {"send_stored": [-1, 1, *[0] * 80, 18, *[0] * 15, 1]},
        "services": [
            {
                "label": "push",
                "role": "messages",
                "sessions": 1,
                "queues": 500,
                "drift": {"ok": 1},
                "delivered": 40,
                "alls": [140, 1],
            }
        ],
    }


def test_zeros_are_left_out() -> None:
    quiet = replace(ROLLUP, commands={"SEND.OK": 0}, events={}, histograms={"send_stored": {4: 0}}, services=())
    content = json.loads(gzip.decompress(encode(quiet)))
    assert content.keys().isdisjoint({"commands", "events", "histograms", "services"})
    assert decode(encode(quiet)) == replace(quiet, commands={}, histograms={})


@pytest.mark.parametrize(
    "wrong",
    [
        {"program": "xmpp"},
        {"router": "a b"},
        {"router": ""},
        {"edge": "0123-4567"},
        {"sequence": 0},
        {"start": -1},
        {"duration": 2**53},
        {"duration": 1.5},
        {"sequence": True},
        {"commands": {"SEND": 1}},
        {"commands": {"TNEW.OK": 1}},
        {"commands": {"SEND.OK": -1}},
        {"events": {"tknCreated": 1}},
        {"events": {"a-recipient-id": 1}},
        {"gauges": {"clients": 1}},
        {"gauges": {"connections": 2**53}},
        {"histograms": {"nmsg_push": {1: 1}}},
        {"histograms": {"send_stored": {-2: 1}}},
        {"histograms": {"send_stored": {LAST + 1: 1}}},
        {"histograms": {"send_stored": {1: -1}}},
        {"services": (ServiceRollup("a label ", "messages"),)},
        {"services": (ServiceRollup("x" * 65, "messages"),)},
        {"services": (ServiceRollup("push", "proxy"),)},
        {"services": (ServiceRollup("push", "messages", drift={"most": 1}),)},
        {"services": (ServiceRollup("push", "messages", sessions=-1),)},
    ],
)
def test_what_is_not_declared_is_not_written(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError):
        encode(replace(ROLLUP, **wrong))


def packed(content: object) -> bytes:
    return gzip.compress(json.dumps(content).encode())


def changed(**changes: object) -> bytes:
    content = json.loads(gzip.decompress(encode(ROLLUP)))
    return packed({k: v for k, v in {**content, **changes}.items() if v is not None})


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "gzip"),
        (b"{}", "gzip"),
        (encode(ROLLUP)[:-9], "cut"),
        (encode(ROLLUP) + b"x", "cut"),
        (gzip.compress(b"0" * (65 << 10)), "too long"),
        (gzip.compress(b"[" * 60_000), "JSON"),
        (gzip.compress(b"\xff"), "JSON"),
        (packed([]), "no object"),
        (packed({}), "version"),
        (changed(version=0), "version"),
        (changed(version="1"), "version"),
        (changed(version=True), "version"),
        (changed(sequence=None), "no sequence"),
        (changed(sequence="7"), "sequence"),
        (changed(router=5), "router"),
        (changed(program=[]), "program"),
        (changed(queue="an-id"), "not declared"),
        (changed(events={"an-id": 1}), "not declared"),
        (changed(events=[1]), "no object"),
        (changed(histograms={"send_stored": {"1": 1}}), "no list"),
        (changed(histograms={"send_stored": [1]}), "no list"),
        (changed(histograms={"send_stored": [True, 1]}), "no list"),
        (changed(histograms={"send_stored": [1, "1"]}), "count of a histogram"),
        (changed(histograms={"send_stored": [-2, 1]}), "bucket"),
        (changed(services={}), "no list"),
        (changed(services=[1]), "no object"),
        (changed(services=[{"label": "push"}]), "no label or no role"),
        (changed(services=[{"label": "push", "role": "messages", "id": "x"}]), "not declared"),
        (changed(services=[{"label": 5, "role": "messages"}]), "usable label"),
        (changed(services=[{"label": "push", "role": []}]), "usable label"),
    ],
)
def test_what_cannot_be_read(data: bytes, reason: str) -> None:
    with pytest.raises(Unreadable, match=reason) as caught:
        decode(data)
    assert "an-id" not in str(caught.value)


@given(st.binary(max_size=100), st.integers(0, 300))
def test_any_bytes_are_unreadable_and_no_mistake(noise: bytes, at: int) -> None:
    good = encode(ROLLUP)
    for data in (noise, good[:at] + noise + good[at + len(noise) :]):
        with contextlib.suppress(Unreadable, Newer):
            decode(data)


def test_a_newer_record_says_its_version() -> None:
    with pytest.raises(Newer) as caught:
        decode(changed(version=VERSION + 4, whatever=[1]))
    assert caught.value.version == VERSION + 4


@pytest.mark.parametrize(
    ("name", "fits"), [("smp", True), ("a.b-c_d", True), ("", False), ("-a", False), ("a" * 64, False)]
)
def test_names_of_routers(name: str, fits: bool) -> None:
    assert is_name(name) is fits


@pytest.mark.parametrize(
    ("label", "fits"),
    [
        ("push", True),
        ("Bücher, Weir's own", True),
        ("a" * 64, True),
        ("a" * 65, False),
        ("other", False),
        (" a", False),
        ("a\nb", False),
        ("\ud800", False),
        ("", False),
    ],
)
def test_labels_of_services(label: str, fits: bool) -> None:
    assert is_label(label) is fits


# Sizes. The random numbers have a seed, and random digits do not compress.


def crowded(program: str, most: int, *, outcomes: int, buckets: int, services: int) -> Rollup:
    rng = random.Random(program)

    def many(names: Any, most: int) -> dict[Any, int]:
        return {name: rng.randrange(most // 10, most) for name in names}

    commands = [f"{command}.{outcome}" for command in COMMANDS[program] for outcome in list(OUTCOMES)[:outcomes]]
    return Rollup(
        "r" * 63,
        program,
        rng.randbytes(6).hex(),
        rng.randrange(2**40),
        rng.randrange(2**42),
        rng.randrange(2**20),
        many(commands, most),
        many(EVENTS[program], most),
        many(GAUGES[program], 10**11),
        {name: many(range(-1, buckets - 1), most) for name in HISTOGRAMS[program]},
        tuple(
            ServiceRollup(
                rng.randbytes(16).hex(),
                "messages" if n % 2 else "notifications",
                rng.randrange(100),
                rng.randrange(most),
                many(DRIFT, most),
                rng.randrange(most),
                many(range(-1, buckets - 1), most),
            )
            for n in range(services)
        ),
    )


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("services", [0, 1, 500])
def test_the_largest_record_fits_and_loses_no_count(program: str, services: int) -> None:
    """Every declared name at once, each command with every outcome, and every bucket of every histogram."""
    largest = crowded(program, 10_000, outcomes=len(OUTCOMES), buckets=LAST + 2, services=services)
    data = encode(largest)
    assert len(data) <= MAX_BYTES
    assert sums(decode(data)) == sums(largest)


def test_a_busy_edges_record_keeps_every_detail() -> None:
    busy = crowded("smp", 1000, outcomes=1, buckets=20, services=2)
    busy = replace(busy, events=dict(list(busy.events.items())[:40]))
    assert as_sets(decode(encode(busy))) == as_sets(busy)


def fits(make: Callable[[int], Rollup], most: int) -> int:
    """The largest size that still keeps every detail."""
    return max(n for n in range(most) if as_sets(decode(encode(make(n)))) == as_sets(make(n)))


def test_services_are_added_up_first_and_the_largest_stay() -> None:
    def make(n: int) -> Rollup:
        return crowded("ntf", 100, outcomes=2, buckets=5, services=n)

    room = fits(make, 60)
    assert 5 < room < 59
    more = make(room + 20)
    found = decode(encode(more))
    assert replace(found, services=()) == replace(more, services=())
    kept = [s for s in found.services if s.label != "other"]
    queues = sorted((s.queues for s in more.services), reverse=True)
    assert [s.queues for s in kept] == queues[: len(kept)]
    assert len(kept) > room // 2
    assert {s.role for s in found.services if s.label == "other"} == {"messages", "notifications"}
    assert sums(found) == sums(more)


def test_then_buckets_become_wider() -> None:
    more = crowded("ntf", 1000, outcomes=2, buckets=200, services=0)
    found = decode(encode(more))
    assert replace(found, histograms={}) == replace(more, histograms={})
    assert sums(found) == sums(more)
    for name, buckets in more.histograms.items():
        true, coarse = quantile(buckets, 0.9), quantile(found.histograms[name], 0.9)
        assert true is not None and coarse is not None
        assert abs(coarse / true - 1) < 0.5


def test_a_record_that_cannot_fit_is_refused() -> None:
    with pytest.raises(ValueError, match="2048"):
        encode(crowded("smp", 10**15, outcomes=len(OUTCOMES), buckets=LAST + 2, services=0))
