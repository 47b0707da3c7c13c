"""Two SMP edges and two NTF edges as processes on one Redis, and the push services' stand-ins in this process.

The edges of a router share a port, so a client that reconnects gets to an edge that lives.
"""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import Awaitable, Callable
from pathlib import Path

from tests.chaos.backends import Fsync
from tests.chaos.processes import Deployment, EdgeProcess
from tests.support.ports import free_port
from weir.bench.standins.apns import Apns
from weir.bench.standins.authority import Authority
from weir.bench.standins.web_push import WebPush
from weir.crypto import p256

EDGES = 2
PREFIX = "ntf"
_KEY_ID, _TEAM_ID, _TOPIC = "KEY4567890", "TEAM567890", "dev.weir.app"
_SMP_SETTINGS = {"WEIR_QUEUES_NOTIFICATION_INTERVAL": "20ms", "WEIR_REDIS_LEASE": "2s"}


class World:
    """`start`, `hit` something, `stop`."""

    def __init__(self, directory: Path, rng: random.Random) -> None:
        self._directory = directory
        self._rng = rng
        self.redis = Fsync((0.0, 0.3))
        self.smp: list[EdgeProcess] = []
        self.ntf: list[EdgeProcess] = []

    async def start(self) -> None:
        self.redis.start()
        smp, ntf = self._directory / "smp", self._directory / "ntf"
        smp.mkdir()
        ntf.mkdir()
        settings = self.redis.settings | {"WEIR_REDIS_CONNECT_TIMEOUT": "30s"}
        await self._start_standins(ntf)
        self.smp = self._edges(Deployment(smp, self.redis.url, settings | _SMP_SETTINGS), "smp")
        (ntf / "storage.key").write_bytes(os.urandom(32))
        self.ntf = self._edges(Deployment(ntf, self.redis.url, settings | self._ntf_settings(ntf)), "ntf")
        await asyncio.gather(*(edge.start() for edge in (*self.smp, *self.ntf)))

    def _edges(self, deployment: Deployment, router: str) -> list[EdgeProcess]:
        port = free_port()
        return [EdgeProcess(deployment, router=router, port=port) for _ in range(EDGES)]

    async def _start_standins(self, directory: Path) -> None:
        authority, key = Authority(), p256.generate()
        p256.save_key(directory / "apns.p8", key)
        p256.save_key(directory / "vapid.key", p256.generate())
        (directory / "ca.pem").write_bytes(authority.pem)
        self.apns = Apns(authority, key=key.public_key(), key_id=_KEY_ID, team_id=_TEAM_ID, topic=_TOPIC)
        self.web_push = WebPush(authority)
        await self.apns.start()
        await self.web_push.start()

    def _ntf_settings(self, directory: Path) -> dict[str, str]:
        return {
            "WEIR_REDIS_PREFIX": PREFIX,
            "WEIR_REDIS_STORAGE_KEY": str(directory / "storage.key"),
            "WEIR_REDIS_LEASE": "2s",
            "WEIR_SUBSCRIBER_ALLOW_LOCAL_SERVERS": "on",
            "WEIR_APNS_KEY": str(directory / "apns.p8"),
            "WEIR_APNS_KEY_ID": _KEY_ID,
            "WEIR_APNS_TEAM_ID": _TEAM_ID,
            "WEIR_APNS_TOPIC": _TOPIC,
            "WEIR_APNS_HOST": f"localhost:{self.apns.server.port}",
            "WEIR_APNS_CA": str(directory / "ca.pem"),
            "WEIR_WEB_PUSH_VAPID_KEY": str(directory / "vapid.key"),
            "WEIR_WEB_PUSH_SUBJECT": "mailto:admin@example.org",
            "WEIR_WEB_PUSH_ALLOW_LOCAL": "on",
            "WEIR_WEB_PUSH_CA": str(directory / "ca.pem"),
        }

    # Faults

    async def hit(self, what: str) -> None:
        """Kill a process with SIGKILL, and start its successor a moment later."""
        hits: dict[str, Callable[[], Awaitable[None]]] = {
            "ntf": lambda: self._kill(self._rng.choice(self.ntf)),
            "smp": lambda: self._kill(self._rng.choice(self.smp)),
            "redis": lambda: self.redis.hit(self._rng),
        }
        await hits[what]()

    async def _kill(self, edge: EdgeProcess) -> None:
        edge.kill()
        await asyncio.sleep(self._rng.choice((0.0, 0.5)))
        await edge.start()

    def errors(self) -> list[str]:
        return [line for edge in (*self.smp, *self.ntf) for line in edge.errors()]

    async def stop(self) -> None:
        for edge in (*self.smp, *self.ntf):
            edge.kill()
        await self.apns.close()
        await self.web_push.close()
        self.redis.stop()
