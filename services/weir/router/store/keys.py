"""Placement of ids in partitions, and all Redis keys. Scripts build the same keys under their hash tag."""

import os
from hashlib import blake2b
from typing import Final

from weir.redis.partitions import PARTITIONS as PARTITIONS

ID_LENGTH: Final = 24
DAY_DIGITS: Final = 5  # days since 1970, from 1997 to 2243

# Small and rarely used keys, all in one slot.
PLACEMENT: Final = b"{weir}:placement"
SERVICES: Final = b"{weir}:services"  # set of service ids
STATS: Final = b"{weir}:stats"
EDGES: Final = b"{weir}:edges"  # sorted set: edge, Unix time of its last report
SWEEPER: Final = b"{weir}:sweeper"  # lock
TASKS: Final = b"weir:tasks"  # channel: an edge gives all edges a task


class Placement:
    """`partition(id) = keyed_hash(K, id) mod 64`. Without K, nobody can tell that two ids belong to one queue."""

    __slots__ = ("_keyed",)

    def __init__(self, key: bytes) -> None:
        if len(key) != 32:
            raise ValueError("the placement key is 32 bytes")
        self._keyed = blake2b(key=key, digest_size=8)

    def partition(self, entity_id: bytes) -> int:
        keyed = self._keyed.copy()
        keyed.update(entity_id)
        return keyed.digest()[7] & 63

    def check(self) -> bytes:
        """A value that differs for different keys and does not reveal the key."""
        keyed = self._keyed.copy()
        keyed.update(b"weir placement")
        return keyed.hexdigest().encode()

    def draw(self, partition: int) -> bytes:
        """A random id in the given partition."""
        while True:
            entity_id = os.urandom(ID_LENGTH)
            if self.partition(entity_id) == partition:
                return entity_id

    def new_ids(self, snd_id: bytes | None, ntf: bool) -> tuple[bytes, bytes, bytes | None]:
        """(recipient id, sender id, notifier id) in one partition. A sender id that the client chose stays as it is."""
        if snd_id is None:
            snd_id = os.urandom(ID_LENGTH)
        p = self.partition(snd_id)
        return self.draw(p), snd_id, self.draw(p) if ntf else None


def queue(p: int, rcv_id: bytes) -> bytes:
    return b"{%d}:q:%b" % (p, rcv_id)


def messages(p: int, rcv_id: bytes) -> bytes:
    return b"{%d}:m:%b" % (p, rcv_id)


def body(p: int, msg_id: bytes) -> bytes:
    return b"{%d}:b:%b" % (p, msg_id)


def sender(p: int, snd_id: bytes) -> bytes:
    return b"{%d}:s:%b" % (p, snd_id)


def notifier(p: int, ntf_id: bytes) -> bytes:
    return b"{%d}:n:%b" % (p, ntf_id)


def notifications(p: int, ntf_id: bytes) -> bytes:
    return b"{%d}:f:%b" % (p, ntf_id)


def link(p: int, link_id: bytes) -> bytes:
    """`p` is the partition of the link id, not of the queue, because the client chooses the link id."""
    return b"{%d}:l:%b" % (p, link_id)


def link_data(p: int, rcv_id: bytes) -> bytes:
    return b"{%d}:d:%b" % (p, rcv_id)


def creation(p: int, snd_id: bytes) -> bytes:
    """The answer to a NEW with a client-chosen sender id, kept for a repeated NEW."""
    return b"{%d}:c:%b" % (p, snd_id)


def counters(p: int) -> bytes:
    return b"{%d}:k" % p


def service(p: int, service_id: bytes) -> bytes:
    return b"{%d}:v:%b" % (p, service_id)


def service_queues(p: int, service_id: bytes) -> bytes:
    return b"{%d}:v:%b:q" % (p, service_id)


def service_ready(p: int, service_id: bytes) -> bytes:
    return b"{%d}:v:%b:ready" % (p, service_id)


def lease(p: int, edge: bytes) -> bytes:
    return b"{%d}:e:%b" % (p, edge)


def inbox(p: int, edge: bytes) -> bytes:
    return b"{%d}:i:%b" % (p, edge)


def channel(edge: bytes) -> bytes:
    """For PUBLISH: one channel for all partitions; the message names the partition."""
    return b"weir:poke:%b" % edge


def shard_channel(p: int, edge: bytes) -> bytes:
    """For SPUBLISH: a channel in the slot of the partition."""
    return b"{%d}:poke:%b" % (p, edge)


def answers(edge: bytes) -> bytes:
    """The channel that brings an edge the answers to its tasks."""
    return b"weir:answers:%b" % edge


_SERVICE: Final = b"{weir}:service:"


def service_record(service_id: bytes) -> bytes:
    return _SERVICE + service_id


def recorded_service(key: bytes) -> bytes | None:
    """The id of the service whose record is stored under this key. None for other keys."""
    return key[len(_SERVICE) :] if key.startswith(_SERVICE) and len(key) == len(_SERVICE) + ID_LENGTH else None


def fingerprint(fp: bytes) -> bytes:
    return b"{weir}:fp:%b" % fp


def edge_gauges(edge: bytes) -> bytes:
    return b"{weir}:edge:%b" % edge


def active_queues(period: str, start: int) -> bytes:
    return b"{weir}:active:%b:%d" % (period.encode(), start)
