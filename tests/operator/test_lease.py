"""The Lease between two replicas, on an API server in a dictionary that knows resource versions."""

from __future__ import annotations

import asyncio

from tests.operator.world import MemoryApi
from weir_operator.api import ApiError
from weir_operator.lease import NAME, Lease
from weir_operator.model import Manifest

SECONDS = 0.3


class VersionedApi(MemoryApi):
    async def replace(self, manifest: Manifest) -> Manifest:
        known = self.objects[manifest["kind"], manifest["metadata"]["name"]]
        if known["metadata"]["resourceVersion"] != manifest["metadata"]["resourceVersion"]:
            raise ApiError(409, "Conflict", "changed", "replace")
        return await super().replace(manifest)

    def holder(self) -> str:
        found: str = self.objects["Lease", NAME]["spec"]["holderIdentity"]
        return found


def lease(api: MemoryApi, name: str) -> Lease:
    return Lease(api, "ns", name, SECONDS)


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
