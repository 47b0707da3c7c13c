"""One replica works: the one that holds the Lease."""

from __future__ import annotations

import asyncio
import logging
from datetime import UTC, datetime

import aiohttp

from weir_operator.api import Api, ApiError
from weir_operator.model import Manifest

NAME = "weir-operator"
_log = logging.getLogger("weir.operator")
_TROUBLE = (ApiError, aiohttp.ClientError, OSError, TimeoutError)


class Lease:
    """`acquire` waits for it, `hold` keeps it and returns when it is lost, `release` hands it on at once."""

    def __init__(self, api: Api, namespace: str, identity: str, seconds: float) -> None:
        self._api = api
        self._namespace = namespace
        self._identity = identity
        self._seconds = seconds
        self._held: Manifest | None = None
        # Another's Lease is counted from when we saw it change: clocks may differ.
        self._seen: tuple[str, float] = ("", 0.0)

    async def acquire(self) -> None:
        waiting = False
        while True:
            try:
                if await self._try():
                    return
                if not waiting:
                    _log.info("another replica works; standing by")
                    waiting = True
            except _TROUBLE as error:
                _log.warning("cannot take the lease yet: %s", error)
            await asyncio.sleep(self._seconds / 5)

    async def hold(self) -> None:
        """Returns when the lease can no longer be counted on."""
        now = asyncio.get_running_loop().time
        renewed = now()
        while True:
            await asyncio.sleep(self._seconds / 5)
            try:
                async with asyncio.timeout(self._seconds / 3):
                    if not await self._try():
                        return
                renewed = now()
            except _TROUBLE as error:
                _log.warning("cannot renew the lease: %s", error)
                if now() - renewed > self._seconds * 2 / 3:
                    return

    async def release(self) -> None:
        if self._held is None:
            return
        self._held["spec"] |= {"holderIdentity": "", "leaseDurationSeconds": 1, "renewTime": _now()}
        try:
            await self._api.replace(self._held)
        except _TROUBLE as error:
            _log.warning("cannot hand the lease on: %s", error)
        self._held = None

    async def _try(self) -> bool:
        found = self._held or await self._api.get("Lease", self._namespace, NAME)
        try:
            if found is None:
                self._held = await self._api.create(self._fresh())
                return True
            if self._held is None and not self._vacant(found):
                return False
            transitions = found["spec"].get("leaseTransitions", 0)
            if found["spec"].get("holderIdentity") != self._identity:
                found["spec"] |= {"acquireTime": _now(), "leaseTransitions": transitions + 1}
            found["spec"] |= {
                "holderIdentity": self._identity,
                "leaseDurationSeconds": int(self._seconds),
                "renewTime": _now(),
            }
            self._held = await self._api.replace(found)
            return True
        except ApiError as error:
            if error.status in (404, 409):
                # Somebody else has written it: whoever it was, look again before claiming anything.
                self._held = None
                return False
            raise

    def _vacant(self, found: Manifest) -> bool:
        spec = found["spec"]
        holder = spec.get("holderIdentity")
        if not holder or holder == self._identity:
            return True
        now = asyncio.get_running_loop().time()
        mark = f"{holder} {spec.get('renewTime')}"
        if mark != self._seen[0]:
            self._seen = (mark, now)
            return False
        return now - self._seen[1] > float(spec.get("leaseDurationSeconds") or self._seconds)

    def _fresh(self) -> Manifest:
        return {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": NAME, "namespace": self._namespace},
            "spec": {
                "holderIdentity": self._identity,
                "leaseDurationSeconds": int(self._seconds),
                "acquireTime": _now(),
                "renewTime": _now(),
                "leaseTransitions": 0,
            },
        }


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
