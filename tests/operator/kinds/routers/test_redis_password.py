"""The rotation of the embedded Redis' password: its steps as a table, and a whole rotation as a transcript."""

from __future__ import annotations

import base64
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.operator.world import Town
from weir_operator.kinds import names
from weir_operator.kinds.routers.observer import Observation
from weir_operator.kinds.routers.redis_password import OVERLAP, Stored, for_edges, next_step, passwords, stored
from weir_operator.kube.conditions import timestamp

NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)
BEFORE, LONG_AGO = NOW - OVERLAP + timedelta(seconds=1), NOW - OVERLAP
A, B = "old", "new"

STEPS: list[tuple[str, Stored, str | None, str | None, tuple[str, ...] | None]] = [
    ("no request", Stored((A,), None, None), A, None, None),
    ("a request", Stored((A,), None, None), A, "1", (A,)),
    ("carried out", Stored((A,), None, "1"), A, "1", None),
    ("the next request", Stored((A,), None, "1"), A, "2", (A,)),
    ("the request is taken back", Stored((A,), None, "1"), A, None, None),
    ("Redis may not know it", Stored((A, B), None, "1"), A, "1", None),
    ("another request meanwhile", Stored((A, B), None, "1"), A, "2", None),
    ("the edges' Secret is gone", Stored((A, B), None, "1"), None, "1", None),
    ("the edges have it", Stored((A, B), None, "1"), B, "1", (B, A)),
    ("they have it since a while", Stored((B, A), BEFORE, "1"), B, "1", None),
    ("they have it long enough", Stored((B, A), LONG_AGO, "1"), B, "1", (B,)),
    ("long enough, but somebody put the old one back", Stored((B, A), LONG_AGO, "1"), A, "1", None),
]


@pytest.mark.parametrize(("store", "edge", "request_", "lines"), [r[1:] for r in STEPS], ids=[r[0] for r in STEPS])
def test_next_step(store: Stored, edge: str | None, request_: str | None, lines: tuple[str, ...] | None) -> None:
    step = next_step(store, edge, request_, NOW)
    if lines is None:
        assert step is None
        return
    assert step is not None
    assert step.lines[: len(lines)] == lines
    if lines == (A,):
        assert len(step.lines) == 2
        assert len(step.lines[1]) >= 32
        assert step.annotations == {names.ROTATE_PASSWORD: request_, names.PASSWORD_SWITCHED: None}


@pytest.mark.parametrize(
    ("store", "edge", "accepted", "given"),
    [
        (Stored((A,), None, None), A, None, A),
        (Stored((A, B), None, None), A, None, A),
        (Stored((A, B), None, None), A, "of an earlier rotation", A),
        (Stored((A, B), None, None), A, B, B),
        (Stored((A, B), None, None), B, None, B),  # Redis does not answer now
        (Stored((A, B), None, None), None, None, A),
        (Stored((B, A), NOW, None), A, None, B),
    ],
)
def test_the_edges_get_a_password_that_redis_accepts(
    store: Stored, edge: str | None, accepted: str | None, given: str
) -> None:
    assert for_edges(store, edge, accepted) == given


def secret(town: Town, name: str) -> tuple[str, ...]:
    return passwords(town.api.objects["Secret", name]["data"])


def accept(town: Town, password: str) -> None:
    """Redis accepts a password, and the observer has found that out."""
    town.observations[town.key] = Observation(accepted=password)


def backdate(town: Town) -> None:
    past = timestamp(datetime.now(UTC) - OVERLAP)
    town.edit("Secret", "r-store", {"metadata": {"annotations": {names.PASSWORD_SWITCHED: past}}})


def rotations(town: Town) -> list[str]:
    return [reason for reason, _ in town.recorded if reason.startswith("RedisPassword")]


async def test_a_rotation_from_request_to_end() -> None:
    town = Town()
    await town.reconcile()
    (old,) = secret(town, "r-store")
    pods = town.api.objects["Deployment", "r"]["spec"]["template"]
    town.annotate(rotate_redis_password="1")
    assert [call for call in await town.reconcile() if "Secret" in call] == [
        "get Secret/r-store",
        "merge Secret/r-store",
    ]
    first, new = secret(town, "r-store")
    assert (first, secret(town, "r-edge")) == (old, (old,))
    # Nothing happens until Redis accepts the new password.
    assert await town.reconcile() == []
    accept(town, new)
    assert "apply Secret/r-edge" in await town.reconcile()
    assert (secret(town, "r-store"), secret(town, "r-edge")) == ((old, new), (new,))
    assert "merge Secret/r-store" in await town.reconcile()
    assert (secret(town, "r-store"), secret(town, "r-edge")) == ((new, old), (new,))
    # Every edge gets time to receive the new password.
    assert await town.reconcile() == []
    backdate(town)
    assert "merge Secret/r-store" in await town.reconcile()
    assert (secret(town, "r-store"), secret(town, "r-edge")) == ((new,), (new,))
    assert await town.reconcile() == []
    assert rotations(town) == ["RedisPasswordAdded", "RedisPasswordSwitched", "RedisPasswordRotated"]
    assert town.api.objects["Deployment", "r"]["spec"]["template"] == pods, "no edge was restarted"
    assert old not in str(town.recorded)
    assert new not in str(town.recorded)
    # The observation of this rotation says nothing about the next one.
    town.annotate(rotate_redis_password="2")
    await town.reconcile()
    await town.reconcile()
    assert secret(town, "r-store")[0] == new
    assert secret(town, "r-edge") == (new,)


async def test_the_reconciler_comes_back_by_itself() -> None:
    town = Town()
    await town.reconcile()
    town.annotate(rotate_redis_password="1")
    await town.reconcile()
    accept(town, secret(town, "r-store")[1])
    assert await town.reconciler.reconcile(town.key) == 1.0, "the edges' Secret was written, and nobody reports that"
    again = await town.reconciler.reconcile(town.key)
    assert again is not None
    assert again <= OVERLAP.total_seconds()


async def test_another_operator_goes_on_from_any_state() -> None:
    """Every state is in the two Secrets: a new operator, which has observed nothing, ends the rotation."""
    town = Town()
    await town.reconcile()
    town.annotate(rotate_redis_password="1")

    (old,) = secret(town, "r-store")
    for _ in range(6):
        again = town.successor()
        lines = secret(again, "r-store")
        if len(lines) == 2 and stored_of(again).untried:
            accept(again, lines[1])
        elif len(lines) == 2:
            backdate(again)
        await again.reconcile()
        assert set(secret(again, "r-edge")) <= set(secret(again, "r-store")), "Redis accepts what the edges have"
    assert len(secret(town, "r-store")) == 1
    assert secret(town, "r-store") == secret(town, "r-edge") != (old,)


def stored_of(town: Town) -> Stored:
    seen = town.cache.child(town.key, "Secret", "r-store")
    assert seen is not None
    return stored(seen.facts)


async def test_a_watch_that_is_behind_changes_no_password() -> None:
    town = Town()
    await town.reconcile()
    live = town.api.objects["Secret", "r-store"]
    other = base64.b64encode(b"another").decode()
    town.api.put({**live, "data": {**live["data"], names.REDIS_PASSWORD: other}})
    town.annotate(rotate_redis_password="1")
    assert "merge Secret/r-store" not in await town.reconcile()
    assert secret(town, "r-store") == ("another",)


@pytest.mark.parametrize(
    "spec",
    [{"maintenance": {"paused": True}}, {"redis": {"external": {"url": "redis://x"}}}],
    ids=["paused", "external"],
)
async def test_no_rotation(spec: dict[str, Any]) -> None:
    town = Town()
    await town.reconcile()
    town.change(**spec)
    before = secret(town, "r-store")
    town.annotate(rotate_redis_password="1")
    await town.reconcile()
    assert secret(town, "r-store") == before


async def test_a_new_router_needs_no_rotation() -> None:
    town = Town()
    town.annotate(rotate_redis_password="1")
    await town.reconcile()
    await town.reconcile()
    assert len(secret(town, "r-store")) == 1
    assert rotations(town) == []


async def test_a_store_secret_that_is_lost_during_a_rotation_comes_back_with_the_edges_password() -> None:
    town = Town()
    await town.reconcile()
    town.annotate(rotate_redis_password="1")
    await town.reconcile()
    accept(town, secret(town, "r-store")[1])
    await town.reconcile()
    (new,) = secret(town, "r-edge")
    town.lose("Secret", "r-store")
    await town.reconcile()
    assert secret(town, "r-store")[0] == new
    assert secret(town, "r-edge") == (new,)
