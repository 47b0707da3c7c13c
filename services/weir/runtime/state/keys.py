"""The Redis keys and channels that every router has: placement, edges, inboxes, statistics, the sweeper."""

from weir.redis.partitions import PARTITIONS, Partitions
from weir.runtime.presence import PresenceKeys


class CommonKeys:
    """Scripts build the keys of a partition under their hash tag, as the methods here do."""

    def __init__(self, partitions: Partitions) -> None:
        self.tags = partitions.tags
        self.registry = registry = partitions.registry  # small and rarely used keys, all in one slot
        self._name = name = partitions.name
        self.placement = registry + b":placement"
        self.stats = registry + b":stats"
        self.edges = registry + b":edges"  # sorted set: edge, Unix time of its last report
        self.rollups = registry + b":rollups"  # stream of records (weir.telemetry.rollups)
        self.sweeper = registry + b":sweeper"  # lock
        self.tasks = name + b":tasks"  # channel: an edge gives all edges a task

    def lease(self, p: int, edge: bytes) -> bytes:
        return b"%b:e:%b" % (self.tags[p], edge)

    def inbox(self, p: int, edge: bytes) -> bytes:
        return b"%b:i:%b" % (self.tags[p], edge)

    def channel(self, edge: bytes) -> bytes:
        """For PUBLISH: one channel for all partitions; the message names the partition."""
        return b"%b:poke:%b" % (self._name, edge)

    def shard_channel(self, p: int, edge: bytes) -> bytes:
        """For SPUBLISH: a channel in the slot of the partition."""
        return b"%b:poke:%b" % (self.tags[p], edge)

    def answers(self, edge: bytes) -> bytes:
        """The channel that brings an edge the answers to its tasks."""
        return b"%b:answers:%b" % (self._name, edge)

    def edge_gauges(self, edge: bytes) -> bytes:
        return b"%b:edge:%b" % (self.registry, edge)

    def sketch(self, period: str, start: int) -> bytes:
        """`period` is what is counted and the period: `queues:day`."""
        return b"%b:used:%b:%d" % (self.registry, period.encode(), start)

    def sketch_key(self, sketch: bytes) -> bytes:
        """The random key of the hashes in a sketch."""
        return sketch + b":key"

    def period_of(self, sketch: bytes) -> tuple[str, int]:
        """The period of a sketch and its start."""
        period, start = sketch.split(b":")[-2:]
        return period.decode(), int(start)

    def presence(self, edge: bytes) -> PresenceKeys:
        partitions = range(PARTITIONS)
        return PresenceKeys(
            [self.lease(p, edge) for p in partitions],
            [self.inbox(p, edge) for p in partitions],
            self.channel(edge),
            [self.shard_channel(p, edge) for p in partitions],
        )
