"""Kubernetes Events about custom objects: what changed, in one line each.

kopf.event() is not used. It repeats equal lines, queues events without a limit, retries for most of a minute what a
namespace in deletion refuses, and writes a placeholder into each event's `action`.
"""

from __future__ import annotations

import asyncio
import logging
import time
from datetime import UTC, datetime
from typing import Any

from weir_operator.kube.api import API_ERRORS, Api
from weir_operator.kube.conditions import timestamp
from weir_operator.kube.objects import Key

_log = logging.getLogger(__name__)
_REPEAT_SECONDS = 600.0
_WAITING = 1000
_REMEMBERED = 10_000


class Recorder:
    """Posts in the background. The same line about the same object is posted once in ten minutes."""

    def __init__(self, api: Api, api_version: str, component: str, instance: str) -> None:
        self._api = api
        self._api_version = api_version  # of the objects that the events are about
        self._component = component
        self._instance = instance
        self._queue: asyncio.Queue[dict[str, Any]] = asyncio.Queue(_WAITING)
        self._posted: dict[tuple[str, str, str], float] = {}

    def record(self, key: Key, uid: str, reason: str, message: str, *, warning: bool = False) -> None:
        now = time.monotonic()
        line = (uid, reason, message)
        if now - self._posted.get(line, -_REPEAT_SECONDS) < _REPEAT_SECONDS:
            return
        if len(self._posted) > _REMEMBERED:
            self._posted = {k: t for k, t in self._posted.items() if now - t < _REPEAT_SECONDS}
        self._posted[line] = now
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
            except API_ERRORS as error:
                # A namespace that is being deleted takes no events. The line is in the log in any case.
                _log.debug("an event was not posted: %s", error)

    def _event(self, key: Key, uid: str, reason: str, message: str, warning: bool) -> dict[str, Any]:
        moment = timestamp(datetime.now(UTC))
        return {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"generateName": f"{key.name}.", "namespace": key.namespace},
            "involvedObject": {
                "apiVersion": self._api_version,
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
            "source": {"component": self._component},
            "reportingComponent": self._component,
            "reportingInstance": self._instance,
        }
