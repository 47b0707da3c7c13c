"""Numbers of the fleet: those of every program, and what is stored: queues, notifiers, messages, services."""

import asyncio
from collections.abc import Iterable, Mapping

from weir.router.store import keys
from weir.router.store.core import Core
from weir.runtime.state.numbers import Numbers

_STORED = ("queues", "notifiers")
_SERVICES = 100  # services of one script call


class Stats(Numbers):
    def __init__(self, core: Core) -> None:
        super().__init__(core, core.keys)
        self._core = core
        self._unsaved = core.unsaved

    def moved(self) -> Mapping[str, int]:
        unsaved = self._unsaved
        moved = {"messages": unsaved.messages, "notifications": unsaved.notifications}
        unsaved.messages = unsaved.notifications = 0
        return moved

    async def add_active(self, queues: Iterable[bytes], queues_ntf: Iterable[bytes]) -> None:
        """Add queues in use to the sketches of today, this week and this month."""
        await self.sketches.add({"queues": queues, "notifiers": queues_ntf})

    async def counts(self) -> dict[str, int]:
        """Totals of the fleet: queues, notifiers, messages, notifications, services and their queues, active queues."""
        core, names = self._core, self._core.keys
        shares, active, services, waiting, edges = await asyncio.gather(
            asyncio.gather(
                *(
                    core.read(p, b"HMGET", names.counters(p), *(name.encode() for name in _STORED))
                    for p in range(keys.PARTITIONS)
                )
            ),
            self.sketches.count(*_STORED),
            core.read_registry(b"SMEMBERS", names.services),
            core.read_registry(b"HMGET", names.stats, b"messages", b"notifications"),
            self.read_edges(),
        )
        roles = await asyncio.gather(*(core.read_registry(b"HGET", names.service_record(s), b"role") for s in services))
        counts = {name: sum(int(share[n] or 0) for share in shares) for n, name in enumerate(_STORED)}
        by_role: dict[bytes, list[bytes]] = {b"M": [], b"N": []}
        for service_id, role in zip(services, roles, strict=True):
            by_role.get(role, []).append(service_id)
        counts |= active
        return counts | {
            "rcv_service_queues": await self._service_queues(by_role[b"M"]),
            "ntf_service_queues": await self._service_queues(by_role[b"N"]),
            "messages": max(0, int(waiting[0] or 0) + self._unsaved.messages),
            "notifications": max(0, int(waiting[1] or 0) + self._unsaved.notifications),
            "services": len(services),
            "rcv_services": len(by_role[b"M"]),
            "ntf_services": len(by_role[b"N"]),
            "edges": len(edges),
        }

    async def _service_queues(self, services: list[bytes]) -> int:
        """Sum the services' own counts. A separate counter would cost time in every association and could differ."""
        total = 0
        for at in range(0, len(services), _SERVICES):
            some = services[at : at + _SERVICES]
            total += sum(
                await asyncio.gather(
                    *(
                        self._core.call(p, "count_queues", [self._core.keys.service(p, each) for each in some], [])
                        for p in range(keys.PARTITIONS)
                    )
                )
            )
        return total
