"""The Lease between two replicas, on an API server in a dictionary that knows resource versions."""

from __future__ import annotations

import asyncio
import time

import aiohttp
import pytest

from tests.operator.world import MemoryApi
from weir_operator.kube.api import ApiError
from weir_operator.kube.lease import Lease
from weir_operator.kube.objects import Manifest

NAME = "weir-operator"
SECONDS = 0.6


class VersionedApi(MemoryApi):
    silent = False  # writes are never answered
    lost_answers = 0  # writes that are carried out, and whose answers are lost

    async def replace(self, manifest: Manifest) -> Manifest:
        if self.silent:
            await asyncio.Event().wait()
        known = self.objects[manifest["kind"], manifest["metadata"]["name"]]
        if known["metadata"]["resourceVersion"] != manifest["metadata"]["resourceVersion"]:
            raise ApiError(409, "Conflict", "changed", "replace")
        found = await super().replace(manifest)
        if self.lost_answers:
            self.lost_answers -= 1
            raise aiohttp.ServerDisconnectedError
        return found

    def holder(self) -> str:
        found: str = self.objects["Lease", NAME]["spec"]["holderIdentity"]
        return found


def lease(api: MemoryApi, name: str) -> Lease:
    return Lease(api, "ns", NAME, name, SECONDS)


async def test_the_second_waits_until_the_first_lets_go() -> None:
    api = VersionedApi()
    first, second = lease(api, "one"), lease(api, "two")
    await first.acquire()
    waiting = asyncio.create_task(second.acquire())
    holding = asyncio.create_task(first.hold())
    await asyncio.sleep(SECONDS * 3)
    assert not waiting.done()
    assert not holding.done()
    holding.cancel()
    await first.release()
    async with asyncio.timeout(5):
        await waiting
    assert api.holder() == "two"


async def test_the_second_takes_over_when_the_first_is_silent() -> None:
    api = VersionedApi()
    await lease(api, "one").acquire()
    api.objects["Lease", NAME]["spec"]["leaseDurationSeconds"] = SECONDS
    async with asyncio.timeout(5):
        await lease(api, "two").acquire()
    assert api.holder() == "two"
    assert api.objects["Lease", NAME]["spec"]["leaseTransitions"] == 1


async def test_a_lease_that_another_has_taken_is_lost() -> None:
    api = VersionedApi()
    first = lease(api, "one")
    await first.acquire()
    stolen = api.objects["Lease", NAME]
    stolen["spec"]["holderIdentity"] = "two"
    api.put(stolen)
    async with asyncio.timeout(5):
        await first.hold()
    await first.release()
    assert api.holder() == "two"


async def test_a_lease_that_cannot_be_renewed_is_lost_in_time() -> None:
    api = VersionedApi()
    first = lease(api, "one")
    await first.acquire()
    api.refuse[f"replace Lease/{NAME}"] = ApiError(500, "", "down", "replace")
    began = asyncio.get_running_loop().time()
    async with asyncio.timeout(5):
        await first.hold()
    assert asyncio.get_running_loop().time() - began < SECONDS * 2


async def test_it_is_held_no_longer_than_two_thirds_of_its_time() -> None:
    api = VersionedApi()
    first = lease(api, "one")
    assert not first.is_held()
    await first.acquire()
    assert first.is_held()
    # No timer needs to run: the process may have been suspended.
    time.sleep(SECONDS * 2 / 3)
    assert not first.is_held()


async def test_renewals_without_an_answer_end_before_another_replica_may_take_over(
    caplog: pytest.LogCaptureFixture,
) -> None:
    api = VersionedApi()
    first = lease(api, "one")
    began = time.monotonic()
    await first.acquire()
    api.silent = True
    async with asyncio.timeout(5):
        await first.hold()
    assert time.monotonic() - began < SECONDS
    assert not first.is_held()
    assert "cannot renew the lease: no answer in time" in caplog.text


async def test_a_renewal_whose_answer_is_lost_is_no_loss() -> None:
    api = VersionedApi()
    first = lease(api, "one")
    await first.acquire()
    api.lost_answers = 1
    holding = asyncio.create_task(first.hold())
    await asyncio.sleep(SECONDS * 2)
    assert api.lost_answers == 0
    assert not holding.done()
    assert first.is_held()
    holding.cancel()


async def test_it_is_released_also_when_the_last_answer_was_lost() -> None:
    api = VersionedApi()
    first = lease(api, "one")
    await first.acquire()
    api.put(api.objects["Lease", NAME])
    await first.release()
    assert api.holder() == ""
    assert not first.is_held()
