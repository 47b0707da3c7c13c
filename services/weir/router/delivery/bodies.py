"""Bodies of messages. A body is in Redis; only the quota message is made here, when a client is to have it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from weir.redis.errors import Unavailable
from weir.router.store.records import Entry, QueueRecord
from weir.wire.smp.message import encrypt_quota

if TYPE_CHECKING:
    from weir.router.store.store import Store
    from weir.runtime.cache import Cache

OnBody = Callable[[bytes | Unavailable | None], None]


class Bodies:
    """Fetches the bodies of messages for all sessions of an edge."""

    __slots__ = ("_records", "_store")

    def __init__(self, store: Store, records: Cache[QueueRecord]) -> None:
        self._store = store
        self._records = records  # by recipient id

    def fetch(self, rcv_id: bytes, entry: Entry, done: OnBody) -> None:
        """Call `done` with the encrypted body, UNAVAILABLE, or None if the message has expired."""
        if entry.quota:
            self._make_quota(rcv_id, entry, done)
        else:
            self._store.messages.body(rcv_id, entry.msg_id, done)

    def _make_quota(self, rcv_id: bytes, entry: Entry, done: OnBody) -> None:
        """Encrypt the quota message with the queue's secret, which is in the queue's record."""

        def fetched(record: QueueRecord | Unavailable | None) -> None:
            if isinstance(record, QueueRecord):
                done(encrypt_quota(record.dh_secret, entry.msg_id, entry.ts))
            else:
                done(record)

        record = self._records.get(rcv_id)
        if record is None:
            self._store.lookups.fetch_rcv(rcv_id, fetched)
        else:
            fetched(record)
