"""A router's life as transcripts: the calls that a reconciliation makes. A finished router needs none."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from tests.operator.world import Town
from weir_operator.kinds import names
from weir_operator.kinds.routers.identity import read_online
from weir_operator.kinds.routers.observer import Observation
from weir_operator.kinds.routers.status import StoreHealth
from weir_operator.kube.api import ApiError
from weir_operator.kube.conditions import timestamp

COLD = [
    "merge SMPRouter/r",
    "create Secret/r-store",
    "create Secret/r-identity",
    "get ServiceAccount/r",
    "apply ServiceAccount/r",
    "get ConfigMap/r-config",
    "apply ConfigMap/r-config",
    "apply NetworkPolicy/r",
    "apply NetworkPolicy/r-redis",
    "apply Service/r",
    "apply Service/r-edges",
    "apply Service/r-http",
    "apply Service/r-redis",
    "apply StatefulSet/r-redis",
    "get ConfigMap/r-address",
    "apply ConfigMap/r-address",
    "get Secret/r-edge",
    "apply Secret/r-edge",
    "apply Deployment/r",
    "apply PodDisruptionBudget/r",
    "status SMPRouter/r",
]


COUNTS = {"connections": 3, "queues": 2, "messages": 1}


async def test_the_first_reconciliation_makes_everything_in_order_and_the_next_makes_no_call() -> None:
    town = Town()
    assert await town.reconcile() == COLD
    assert await town.reconcile() == []
    assert town.condition("CertificateValid") == ("True", "Valid")
    assert town.status["address"] == f"smp://{town.status['fingerprint']}@r.ns.svc"
    assert [reason for reason, _ in town.recorded] == ["IdentityCreated", "Created"]


async def test_the_calls_of_a_reconciliation_do_not_depend_on_how_often_or_how_many() -> None:
    counts = set()
    for _ in range(5):
        town = Town()
        counts.add(len(await town.reconcile()))
        for _ in range(3):
            assert await town.reconcile() == []
    assert counts == {len(COLD)}


async def test_a_new_operator_adopts_without_a_write() -> None:
    town = Town()
    await town.reconcile()
    assert await town.successor().reconcile() == []


async def test_drift_is_repaired_by_one_apply() -> None:
    town = Town()
    await town.reconcile()
    town.lose("Deployment", "r")
    assert await town.reconcile() == ["apply Deployment/r"]
    town.edit("ConfigMap", "r-config", {"data": {"weir.toml": "other"}})
    assert await town.reconcile() == ["apply ConfigMap/r-config"]
    assert ("Repaired", "ConfigMap r-config had been changed or deleted and is back") in town.recorded


async def test_an_addition_that_applying_leaves_is_replaced() -> None:
    town = Town()
    await town.reconcile()
    extra = {"name": "more", "port": 1, "protocol": "TCP"}
    ports = town.api.objects["Service", "r"]["spec"]["ports"]
    # Server-side apply merges lists by key, so the addition stays; the stand-in is told to behave so.
    plain = town.api.apply

    async def keeping(manifest, *, force):  # type: ignore[no-untyped-def]
        made = await plain(manifest, force=force)
        if manifest["metadata"]["name"] == "r" and manifest["kind"] == "Service":
            made["spec"]["ports"] = [*made["spec"]["ports"], extra]
        return made

    town.api.apply = keeping  # type: ignore[method-assign]
    town.edit("Service", "r", {"spec": {"ports": [*ports, extra]}})
    assert await town.reconcile() == ["apply Service/r", "replace Service/r"]
    assert town.api.objects["Service", "r"]["spec"]["ports"] == ports


async def test_a_refused_child_is_reported_and_the_others_are_applied() -> None:
    town = Town()
    town.api.refuse["apply StatefulSet/r-redis"] = ApiError(422, "Invalid", "spec.template: bad", "apply")
    calls = await town.reconcile()
    assert "apply Deployment/r" in calls
    assert town.condition("Ready") == ("False", "ApplyFailed")
    message = town.status["conditions"][0]["message"]
    assert message == "StatefulSet r-redis: spec.template: bad"


async def test_pruned_when_no_longer_asked_for() -> None:
    town = Town(autoscaling={"maxReplicas": 5})
    await town.reconcile()
    assert ("HorizontalPodAutoscaler", "r") in town.api.objects
    town.change(autoscaling=None)
    town.body["spec"].pop("autoscaling")
    town.api.put(town.body)
    town.watch()
    assert "delete HorizontalPodAutoscaler/r" in await town.reconcile()


async def test_paused_children_are_left_alone_and_status_goes_on() -> None:
    town = Town()
    await town.reconcile()
    town.change(maintenance={"paused": True})
    await town.reconcile()
    town.lose("Service", "r-http")
    assert "apply Service/r-http" not in await town.reconcile()
    assert town.condition("Progressing") == ("False", "Paused")


async def test_paused_nothing_is_made_and_the_status_shows_the_certificate_of_the_edges() -> None:
    town = Town()
    await town.reconcile()
    told, edge = town.status["certificate"], town.api.objects["Secret", "r-edge"]
    town.change(maintenance={"paused": True}, certificate={"lifetimeDays": 3650, "renewBeforeDays": 3000})
    town.annotate(renew_certificate="now")
    town.recorded.clear()
    assert await town.reconcile() == ["status SMPRouter/r"]
    assert await town.reconcile() == []
    assert town.status["certificate"] == told
    assert town.condition("CertificateValid") == ("True", "RenewalDue")
    assert "paused" in next(c["message"] for c in town.status["conditions"] if c["type"] == "CertificateValid")
    assert town.api.objects["Secret", "r-edge"] == edge
    assert [reason for reason, _ in town.recorded] == ["RenewalDue"]
    # A request that came meanwhile is carried out afterwards.
    town.change(maintenance={"paused": False})
    assert "apply Secret/r-edge" in await town.reconcile()
    assert town.status["certificate"]["daysLeft"] == 3649


async def test_a_router_that_begins_paused_gets_nothing_yet() -> None:
    town = Town(maintenance={"paused": True})
    assert await town.reconcile() == ["merge SMPRouter/r", "status SMPRouter/r"]
    assert town.condition("CertificateValid") == ("Unknown", "Pending")
    assert "address" not in town.status
    town.change(maintenance={"paused": False})
    assert "create Secret/r-identity" in await town.reconcile()


async def test_the_status_shows_no_certificate_that_could_not_be_given_to_the_edges() -> None:
    town = Town()
    town.api.refuse["apply Secret/r-edge"] = ApiError(403, "Forbidden", "not allowed", "apply")
    await town.reconcile()
    assert town.condition("CertificateValid") == ("Unknown", "Pending")
    assert town.condition("Ready") == ("False", "Forbidden")
    assert "certificate" not in town.status
    town.api.refuse.clear()
    await town.reconcile()
    assert town.condition("CertificateValid") == ("True", "Valid")
    assert [reason for reason, _ in town.recorded].count("IdentityCreated") == 1


async def test_a_lost_identity_stays_lost_until_it_is_back_or_given_up() -> None:
    town = Town()
    await town.reconcile()
    address, backup = town.status["address"], town.api.objects["Secret", "r-identity"]
    edge = town.api.objects["Secret", "r-edge"]["data"]
    town.lose("Secret", "r-identity")
    for _ in range(3):
        assert not [call for call in await town.reconcile() if call.startswith(("create", "apply"))]
    assert town.condition("CertificateValid") == ("False", "IdentityLost")
    assert town.status["address"] == address
    assert town.api.objects["Secret", "r-edge"]["data"] == edge
    town.cache.child_event("Secret", town.api.put(backup), gone=False)
    await town.reconcile()
    assert town.condition("CertificateValid") == ("True", "Valid")
    town.lose("Secret", "r-identity")
    town.annotate(replace_address=town.status["fingerprint"])
    assert "create Secret/r-identity" in await town.reconcile()
    assert town.status["address"] != address


@pytest.mark.parametrize("kind", [names.SMP_ROUTER, names.NTF_ROUTER])
async def test_a_new_router_has_ed25519_keys(kind: str) -> None:
    town = Town(kind)
    await town.reconcile()
    found = read_online(town.api.objects["Secret", "r-edge"]["data"])
    assert found is not None
    assert found.ed448 == (False, False)
    assert town.condition("CertificateValid") == ("True", "Valid")


@pytest.mark.parametrize("stored", [True, False], ids=["with its key type", "from before the key type had a default"])
async def test_an_ed448_router_keeps_its_identity_address_and_certificate(stored: bool) -> None:
    """The API server stored the earlier default into the router, or the router has none. Nothing changes either way."""
    before = Town(identity={"keyType": "Ed448"})
    await before.reconcile()
    after = Town(**({"identity": {"keyType": "Ed448"}} if stored else {}))
    for (kind, _), body in before.api.objects.items():
        if kind != names.SMP_ROUTER:
            after.api.put(body)
            after.cache.child_event(kind, body, gone=False)
    after.api.put({**after.body, "status": before.status, "metadata": before.body["metadata"]})
    after.watch()
    assert await after.reconcile() == []
    assert after.status["address"] == before.status["address"]
    assert after.condition("CertificateValid") == ("True", "Ed448")


async def test_ed448_is_a_warning() -> None:
    town = Town(identity={"keyType": "Ed448"})
    await town.reconcile()
    await town.reconcile()
    assert town.warnings == ["Ed448"]


async def test_a_watch_that_is_behind_does_not_cost_an_identity() -> None:
    """The cached router has no address yet, but the one on the API server has: nothing may be generated."""
    town = Town()
    await town.reconcile()
    stale = Town()
    stale.api.objects = town.api.objects
    stale.cache.object_event(names.SMP_ROUTER, {**town.body, "status": {}}, gone=False)
    del town.api.objects["Secret", "r-identity"]
    del town.api.objects["Secret", "r-edge"]
    calls = await stale.reconcile()
    assert "create Secret/r-identity" not in calls


async def test_observations_become_conditions_and_numbers() -> None:
    town = Town()
    await town.reconcile()
    assert town.condition("StoreReachable") == ("Unknown", "Pending")
    health = StoreHealth(True, True, "Proved", "waited for")
    town.observations[town.key] = Observation(health, {**COUNTS, "observedAt": timestamp(datetime.now(UTC))})
    assert await town.reconcile() == ["status SMPRouter/r"]
    assert town.condition("DurabilityReady") == ("True", "Proved")
    assert (town.status["connections"], town.status["queues"], town.status["messages"]) == (3, 2, 1)
    # The same numbers, counted later: no news.
    town.observations[town.key] = Observation(
        health, {**COUNTS, "observedAt": timestamp(datetime(2030, 1, 1, tzinfo=UTC))}
    )
    assert await town.reconcile() == []


async def test_a_notification_router_has_the_same_children() -> None:
    """Beside them, it has the key of Web Push. A finished router needs no call."""
    town = Town(names.NTF_ROUTER)
    calls = await town.reconcile()
    assert calls == ["merge NTFRouter/r", "create Secret/r-vapid", *COLD[1:-1], "status NTFRouter/r"]
    assert await town.reconcile() == []
    assert town.status["address"].startswith(f"ntf://{town.status['fingerprint']}@r.ns.svc?vapid=")
