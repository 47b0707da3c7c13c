"""Queue records by the id that a party knows, with a cache of those used last.

The declaration of a command names its party (weir/wire/smp/commands.py), and the party decides by which id the record
of the command's queue is found.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from weir.redis.errors import Unavailable
from weir.router.store.records import QueueRecord
from weir.runtime.cache import Cache
from weir.wire.smp.commands import DECLARATIONS, Command, Party

if TYPE_CHECKING:
    from weir.router.store.store import Store

OnRecord = Callable[[QueueRecord | Unavailable | None], None]


class Credentials:
    """Queue records that are found by one kind of id."""

    __slots__ = ("cache", "fetch")

    def __init__(self, fetch: Callable[[bytes, OnRecord], None], limit: int) -> None:
        self.fetch = fetch
        self.cache: Cache[QueueRecord] = Cache(limit)


class AllCredentials:
    """The queue records that an edge has cached. `by_command` is for the handlers."""

    __slots__ = ("_by_notifier", "_by_recipient", "_by_sender", "by_command")

    def __init__(self, store: Store, limit: int) -> None:
        self._by_recipient = Credentials(store.lookups.fetch_rcv, limit)
        self._by_sender = Credentials(store.lookups.fetch_snd, limit)
        self._by_notifier = Credentials(store.lookups.fetch_ntf, limit)
        by_party = {
            Party.RECIPIENT: self._by_recipient,
            Party.SENDER: self._by_sender,
            Party.NOTIFIER: self._by_notifier,
            Party.LINK_READER: Credentials(store.links.fetch_link, 0),
        }
        self.by_command: dict[type[Command], Credentials] = {
            kind: by_party[declared.party] for kind, declared in DECLARATIONS.items() if declared.party in by_party
        }

    @property
    def recipients(self) -> Cache[QueueRecord]:
        """The cached records by recipient id."""
        return self._by_recipient.cache

    def forget(self, record: QueueRecord) -> None:
        """A command of this edge has changed or deleted the queue: its cached records are outdated."""
        self._by_recipient.cache.drop(record.rcv_id)
        self._by_sender.cache.drop(record.snd_id)
        if record.ntf_id is not None:
            self._by_notifier.cache.drop(record.ntf_id)

    def __len__(self) -> int:
        return len(self._by_recipient.cache) + len(self._by_sender.cache) + len(self._by_notifier.cache)
