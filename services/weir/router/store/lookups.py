"""Queue records by recipient, sender or notifier id, in one round trip. A miss takes as long as a hit."""

import logging
from collections.abc import Callable
from typing import Any, Final

from weir.redis.errors import UNAVAILABLE, Unavailable
from weir.router.store.core import Core
from weir.router.store.packing import parse_record
from weir.router.store.records import QueueRecord
from weir.runtime.state.calls import awaited
from weir.telemetry.errors import log_mistake

_log = logging.getLogger(__name__)

_HGETALL: Final = b"*2\r\n$7\r\nHGETALL\r\n$%d\r\n%b\r\n"

Fetched = QueueRecord | None | Unavailable


class Lookups:
    def __init__(self, core: Core) -> None:
        self._core = core
        self._keys = core.keys
        self._muxes = core.muxes

    def fetch_rcv(self, rcv_id: bytes, done: Callable[[Fetched], None]) -> None:
        p = self._core.partition(rcv_id)
        key = self._keys.queue(p, rcv_id)
        self._muxes[p].read(_HGETALL % (len(key), key), _fetched, (rcv_id, p, done))

    def fetch_snd(self, snd_id: bytes, done: Callable[[Fetched], None]) -> None:
        p = self._core.partition(snd_id)
        wire = self._core.script_wire("fetch", [self._keys.sender(p, snd_id)], [])
        self._muxes[p].script(wire, _fetched_by, (p, done))

    def fetch_ntf(self, ntf_id: bytes, done: Callable[[Fetched], None]) -> None:
        p = self._core.partition(ntf_id)
        wire = self._core.script_wire("fetch", [self._keys.notifier(p, ntf_id)], [])
        self._muxes[p].script(wire, _fetched_by, (p, done))

    async def get_rcv(self, rcv_id: bytes) -> QueueRecord | None:
        return await awaited(lambda done: self.fetch_rcv(rcv_id, done))

    async def get_snd(self, snd_id: bytes) -> QueueRecord | None:
        return await awaited(lambda done: self.fetch_snd(snd_id, done))


def _fetched(raw: Any, ctx: tuple[bytes, int, Callable[[Fetched], None]]) -> None:
    rcv_id, p, done = ctx
    done(UNAVAILABLE if raw is UNAVAILABLE else _record(rcv_id, p, raw) if raw else None)


def _fetched_by(raw: Any, ctx: tuple[int, Callable[[Fetched], None]]) -> None:
    p, done = ctx
    done(UNAVAILABLE if raw is UNAVAILABLE else _record(raw[0], p, raw[1:]) if raw else None)


def _record(rcv_id: bytes, p: int, flat: list[bytes]) -> Fetched:
    """UNAVAILABLE for a record that is damaged: only the commands of its own queue fail."""
    try:
        return parse_record(rcv_id, p, flat)
    except (LookupError, ValueError) as error:
        log_mistake(_log, "a queue's record is damaged", error)
        return UNAVAILABLE
