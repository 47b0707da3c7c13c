"""Leader election: of all replicas, only the holder of the Lease works.

kubernetes.aio.leaderelection (37.0.2) is for the same job, but is not used, for five reasons that
tests/operator/kube/test_lease_library.py shows:
- It cannot create the Lease: its own request fails the library's validation of arguments.
- It does not release the Lease when the process stops, so the next replica waits until the Lease expires.
- When another replica holds the Lease, it lets the work continue until its renew deadline.
- A lost connection to the API server ends it with an exception.
- Each renewal takes a GET and a PUT. Here one PUT is enough, because its resource version detects foreign writes.

Fencing: other replicas take the Lease `seconds` after its last renewal. The holder counts from the moment when it began
that renewal, and stops after two thirds of the time. `is_held` says so at any moment, also when the process was
suspended and no timer could run; the API client asks it before each write.
"""

from __future__ import annotations

import asyncio
import logging
import time
from datetime import UTC, datetime

from weir_operator.kube.api import API_ERRORS, Api, ApiError
from weir_operator.kube.objects import Manifest

_log = logging.getLogger(__name__)


class Lease:
    """`acquire` waits for the Lease, `hold` renews it until it is lost, `release` frees it for the next replica."""

    def __init__(self, api: Api, namespace: str, name: str, identity: str, seconds: float) -> None:
        self._api = api
        self._namespace = namespace
        self._name = name
        self._identity = identity
        self._seconds = seconds
        self._held: Manifest | None = None
        self._ours_until = 0.0  # on the clock of time.monotonic
        # Clocks may differ, so the Lease of another replica expires by our clock, counted from its last change we saw.
        self._seen: tuple[str, float] = ("", 0.0)

    def is_held(self) -> bool:
        """Whether no other replica can have the Lease yet."""
        return time.monotonic() < self._ours_until

    async def acquire(self) -> None:
        waiting = False
        while True:
            try:
                if await self._claim():
                    return
                if not waiting:
                    _log.info("another replica holds the lease; standing by")
                    waiting = True
            except API_ERRORS as error:
                _log.warning("cannot take the lease yet: %s", _describe(error))
            await asyncio.sleep(self._seconds / 5)

    async def hold(self) -> None:
        """Renew the Lease. Return when it is lost, before another replica may take it."""
        while True:
            await asyncio.sleep(min(self._seconds / 5, self._left()))
            try:
                async with asyncio.timeout(min(self._seconds / 3, self._left())):
                    if not await self._claim():
                        return
            except API_ERRORS as error:
                _log.warning("cannot renew the lease: %s", _describe(error))
            if not self.is_held():
                return

    def _left(self) -> float:
        return max(self._ours_until - time.monotonic(), 0.0)

    async def release(self) -> None:
        """Free the Lease if it is still ours."""
        self._ours_until = 0.0
        held, self._held = self._held, None
        try:
            if held is not None and not await self._free(held):
                # The answer to our last renewal may have been lost, so the version in `held` is an old one.
                live = await self._api.get("Lease", self._namespace, self._name)
                if live is not None and live["spec"].get("holderIdentity") == self._identity:
                    await self._free(live)
        except API_ERRORS as error:
            _log.warning("cannot release the lease: %s", error)

    async def _free(self, lease: Manifest) -> bool:
        """False when the Lease has changed meanwhile."""
        lease["spec"] |= {"holderIdentity": "", "leaseDurationSeconds": 1, "renewTime": _now()}
        try:
            await self._api.replace(lease)
        except ApiError as error:
            if error.status in (404, 409):
                return False
            raise
        return True

    async def _claim(self) -> bool:
        """Create, take or renew the Lease. False means that another replica has it."""
        began = time.monotonic()
        try:
            ours = await self._write()
        except ApiError as error:
            if error.status not in (404, 409):
                raise
            # The Lease is not as we last saw it: another replica has written or deleted it, or the answer to our own
            # last write was lost. The server knows which.
            self._held = None
            began = time.monotonic()
            ours = await self._write_after_conflict()
        self._held = ours
        self._ours_until = began + self._seconds * 2 / 3 if ours is not None else 0.0
        return ours is not None

    async def _write_after_conflict(self) -> Manifest | None:
        try:
            return await self._write()
        except ApiError as error:
            if error.status in (404, 409):
                return None
            raise

    async def _write(self) -> Manifest | None:
        found = self._held or await self._api.get("Lease", self._namespace, self._name)
        if found is None:
            return await self._api.create(self._fresh())
        if self._held is None and not self._vacant(found):
            return None
        transitions = found["spec"].get("leaseTransitions", 0)
        if found["spec"].get("holderIdentity") != self._identity:
            found["spec"] |= {"acquireTime": _now(), "leaseTransitions": transitions + 1}
        found["spec"] |= {
            "holderIdentity": self._identity,
            "leaseDurationSeconds": int(self._seconds),
            "renewTime": _now(),
        }
        return await self._api.replace(found)

    def _vacant(self, found: Manifest) -> bool:
        """Whether nobody else holds this Lease, or its holder has not renewed it in time."""
        spec = found["spec"]
        holder = spec.get("holderIdentity")
        if not holder or holder == self._identity:
            return True
        now = time.monotonic()
        mark = f"{holder} {spec.get('renewTime')}"
        if mark != self._seen[0]:
            self._seen = (mark, now)
            return False
        return now - self._seen[1] > float(spec.get("leaseDurationSeconds") or self._seconds)

    def _fresh(self) -> Manifest:
        return {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": self._name, "namespace": self._namespace},
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


def _describe(error: Exception) -> str:
    return "no answer in time" if isinstance(error, TimeoutError) else str(error)
