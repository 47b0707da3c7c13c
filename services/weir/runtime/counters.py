"""Counters that an edge adds to the fleet's every few seconds."""

from __future__ import annotations

from dataclasses import fields


class Counters:
    """Base of a dataclass of counters: ints, dicts (bucket → count) and further counters. Other fields are left out.

    `take` returns what was counted since the last call and resets the counters. If it cannot be saved, `give_back`
    restores it.
    """

    __slots__ = ()

    def take(self) -> dict[str, int]:
        """Counts by name: `msgSent`, `rcvServices_srvSubOk` for a part, `msgRecvAckTimes_5` for a bucket."""
        taken: dict[str, int] = {}
        for item in fields(self):  # type: ignore[arg-type]
            value = getattr(self, item.name)
            if isinstance(value, int):
                if value:
                    taken[item.name] = value
                    setattr(self, item.name, 0)
            elif isinstance(value, dict):
                taken.update({f"{item.name}_{bucket}": count for bucket, count in value.items()})
                value.clear()
            elif isinstance(value, Counters):
                taken.update({f"{item.name}_{name}": count for name, count in value.take().items()})
        return taken

    def give_back(self, taken: dict[str, int]) -> None:
        for name, count in taken.items():
            outer, _, inner = name.partition("_")
            value = getattr(self, outer)
            if isinstance(value, int):
                setattr(self, outer, value + count)
            elif isinstance(value, dict):
                value[int(inner)] = value.get(int(inner), 0) + count
            else:
                value.give_back({inner: count})
