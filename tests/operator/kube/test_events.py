"""Events: posted once, about the right object."""

from __future__ import annotations

import asyncio
import contextlib

from tests.operator.world import MemoryApi
from weir_operator.kinds import names
from weir_operator.kube.api import ApiError
from weir_operator.kube.events import Recorder
from weir_operator.kube.objects import Key, Manifest

KEY = Key(names.SMP_ROUTER, "ns", "r")


class Posting(MemoryApi):
    def __init__(self) -> None:
        super().__init__()
        self.posted: list[Manifest] = []
        self.fail = 0

    async def create(self, manifest: Manifest) -> Manifest:
        if self.fail:
            self.fail -= 1
            raise ApiError(403, "Forbidden", "namespace is being terminated", "create")
        self.posted.append(manifest)
        return manifest


async def posted(api: Posting, recorder: Recorder) -> list[tuple[str, str, str]]:
    task = asyncio.create_task(recorder.run())
    await asyncio.sleep(0.05)
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task
    return [(one["type"], one["reason"], one["message"]) for one in api.posted]


async def test_the_same_line_is_said_once() -> None:
    api = Posting()
    recorder = Recorder(api, names.API_VERSION, names.MANAGER, "me")
    for _ in range(3):
        recorder.record(KEY, "u", "Repaired", "Service r is back")
    recorder.record(KEY, "u", "Repaired", "Service r-http is back")
    recorder.record(KEY, "other", "Repaired", "Service r is back", warning=True)
    assert await posted(api, recorder) == [
        ("Normal", "Repaired", "Service r is back"),
        ("Normal", "Repaired", "Service r-http is back"),
        ("Warning", "Repaired", "Service r is back"),
    ]
    about = api.posted[0]["involvedObject"]
    assert (about["kind"], about["name"], about["uid"]) == (names.SMP_ROUTER, "r", "u")


async def test_an_event_that_is_refused_stops_nothing() -> None:
    api = Posting()
    api.fail = 1
    recorder = Recorder(api, names.API_VERSION, names.MANAGER, "me")
    recorder.record(KEY, "u", "A", "first")
    recorder.record(KEY, "u", "B", "second")
    assert await posted(api, recorder) == [("Normal", "B", "second")]


async def test_long_messages_fit() -> None:
    api = Posting()
    recorder = Recorder(api, names.API_VERSION, names.MANAGER, "me")
    recorder.record(KEY, "u", "A", "x" * 5000)
    assert len((await posted(api, recorder))[0][2]) == 1024
