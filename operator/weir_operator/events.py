"""Kubernetes Events about our objects: what changed, in one line each."""

from __future__ import annotations

import asyncio
import logging
import time
from datetime import UTC, datetime
from typing import Any

import aiohttp

from weir_operator import names
from weir_operator.api import Api, ApiError
from weir_operator.cache import Key
from weir_operator.status import timestamp

_log = logging.getLogger("weir.operator")
_REPEAT_SECONDS = 600.0
_WAITING = 1000


class Recorder:
    """Posts in the background; the same line about the same object is not repeated for ten minutes."""

    def __init__(self, api: Api, instance: str) -> None:
        self._api = api
        self._instance = instance
        self._queue: asyncio.Queue[dict[str, Any]] = asyncio.Queue(_WAITING)
        self._said: dict[tuple[str, str, str], float] = {}

    def say(self, key: Key, uid: str, reason: str, message: str, *, warning: bool = False) -> None:
        now = time.monotonic()
        line = (uid, reason, message)
        if now - self._said.get(line, -_REPEAT_SECONDS) < _REPEAT_SECONDS:
            return
        if len(self._said) > 10_000:
            self._said = {k: t for k, t in self._said.items() if now - t < _REPEAT_SECONDS}
        self._said[line] = now
        _log.info("%s %s/%s: %s: %s", key.kind, key.namespace, key.name, reason, message)
        try:
            self._queue.put_nowait(self._event(key, uid, reason, message, warning))
        except asyncio.QueueFull:
            _log.warning("too many events at once: one was not posted")

    async def run(self) -> None:
        while True:
            event = await self._queue.get()
            try:
                await self._api.create(event)
            except (ApiError, aiohttp.ClientError, OSError, TimeoutError) as error:
                # A namespace that is going away takes no events; the log has the line in any case.
                _log.debug("an event was not posted: %s", error)

    def _event(self, key: Key, uid: str, reason: str, message: str, warning: bool) -> dict[str, Any]:
        moment = timestamp(datetime.now(UTC))
        return {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"generateName": f"{key.name}.", "namespace": key.namespace},
            "involvedObject": {
                "apiVersion": names.API_VERSION,
                "kind": key.kind,
                "namespace": key.namespace,
                "name": key.name,
                "uid": uid,
            },
            "type": "Warning" if warning else "Normal",
            "reason": reason,
            "message": message[:1024],
            "count": 1,
            "firstTimestamp": moment,
            "lastTimestamp": moment,
            "source": {"component": names.MANAGER},
            "reportingComponent": names.MANAGER,
            "reportingInstance": self._instance,
        }
