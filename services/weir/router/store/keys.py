"""All Redis keys of an SMP router. Scripts build the same keys under their hash tag."""

import os
from typing import Final

from weir.redis.partitions import PARTITIONS as PARTITIONS
from weir.redis.partitions import Partitions
from weir.runtime.state import placement
from weir.runtime.state.keys import CommonKeys
from weir.runtime.state.placement import ID_LENGTH as ID_LENGTH

DAY_DIGITS: Final = 5  # days since 1970, from 1997 to 2243


class Placement(placement.Placement):
    __slots__ = ()

    def new_ids(self, snd_id: bytes | None, ntf: bool) -> tuple[bytes, bytes, bytes | None]:
        """(recipient id, sender id, notifier id) in one partition. A sender id that the client chose stays as it is."""
        if snd_id is None:
            snd_id = os.urandom(ID_LENGTH)
        p = self.partition(snd_id)
        return self.draw(p), snd_id, self.draw(p) if ntf else None


class Keys(CommonKeys):
    def __init__(self, partitions: Partitions) -> None:
        super().__init__(partitions)
        self.services = self.registry + b":services"  # set of service ids
        self._service = self.registry + b":service:"

    def queue(self, p: int, rcv_id: bytes) -> bytes:
        return b"%b:q:%b" % (self.tags[p], rcv_id)

    def messages(self, p: int, rcv_id: bytes) -> bytes:
        return b"%b:m:%b" % (self.tags[p], rcv_id)

    def body(self, p: int, msg_id: bytes) -> bytes:
        return b"%b:b:%b" % (self.tags[p], msg_id)

    def sender(self, p: int, snd_id: bytes) -> bytes:
        return b"%b:s:%b" % (self.tags[p], snd_id)

    def notifier(self, p: int, ntf_id: bytes) -> bytes:
        return b"%b:n:%b" % (self.tags[p], ntf_id)

    def notifications(self, p: int, ntf_id: bytes) -> bytes:
        return b"%b:f:%b" % (self.tags[p], ntf_id)

    def link(self, p: int, link_id: bytes) -> bytes:
        """`p` is the partition of the link id, not of the queue, because the client chooses the link id."""
        return b"%b:l:%b" % (self.tags[p], link_id)

    def link_data(self, p: int, rcv_id: bytes) -> bytes:
        return b"%b:d:%b" % (self.tags[p], rcv_id)

    def creation(self, p: int, snd_id: bytes) -> bytes:
        """The answer to a NEW with a client-chosen sender id, kept for a repeated NEW."""
        return b"%b:c:%b" % (self.tags[p], snd_id)

    def counters(self, p: int) -> bytes:
        return b"%b:k" % self.tags[p]

    def service(self, p: int, service_id: bytes) -> bytes:
        return b"%b:v:%b" % (self.tags[p], service_id)

    def service_queues(self, p: int, service_id: bytes) -> bytes:
        return b"%b:v:%b:q" % (self.tags[p], service_id)

    def service_ready(self, p: int, service_id: bytes) -> bytes:
        return b"%b:v:%b:ready" % (self.tags[p], service_id)

    def service_record(self, service_id: bytes) -> bytes:
        return self._service + service_id

    def recorded_service(self, key: bytes) -> bytes | None:
        """The id of the service whose record is stored under this key. None for other keys."""
        start = len(self._service)
        return key[start:] if key.startswith(self._service) and len(key) == start + ID_LENGTH else None

    def fingerprint(self, fp: bytes) -> bytes:
        return b"%b:fp:%b" % (self.registry, fp)
