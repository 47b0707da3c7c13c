"""Skips a message whose body is gone: it has expired, or a GET client has acknowledged it.

For the store the message is still in flight, so the client would wait for ever. The router acknowledges the message for
the client and sends the next message.
"""

from __future__ import annotations

from time import time
from typing import TYPE_CHECKING

from weir.redis.errors import UNAVAILABLE, Unavailable
from weir.router.store.records import AckResult, Entry, QueueRecord, Status

if TYPE_CHECKING:
    from weir.router.router import Shared
    from weir.router.session.outgoing import Outgoing
    from weir.router.session.subscriptions import Sub, Subscriptions

_RETRY = 1.0  # seconds


def skip_expired(
    shared: Shared,
    conn: int,
    subscriptions: Subscriptions,
    outgoing: Outgoing,
    rcv_id: bytes,
    sub: Sub,
    entry: Entry,
) -> None:
    """Acknowledge the message and send the next one. Tried again until Redis answers or the client is gone."""

    def is_wanted() -> bool:
        return not outgoing.closed and subscriptions.awaits(rcv_id, sub, entry.msg_id)

    def begin() -> None:
        shared.store.lookups.fetch_rcv(rcv_id, fetched)

    def retry() -> None:
        if is_wanted():
            begin()

    def fetched(record: QueueRecord | Unavailable | None) -> None:
        if isinstance(record, QueueRecord):
            now = int(time())
            expire_before = shared.expire_before(now)
            shared.store.messages.ack(record, conn, sub.gen, entry.msg_id, expire_before, now // 86400, acknowledged)
        elif record is UNAVAILABLE:
            shared.loop.call_later(_RETRY, retry)

    def acknowledged(result: AckResult | Unavailable) -> None:
        if result is UNAVAILABLE:
            shared.loop.call_later(_RETRY, retry)
            return
        if not is_wanted():
            return
        assert isinstance(result, AckResult)
        if result.status is Status.STALE:
            begin()
        elif result.status is Status.OK:
            sub.clear()
            if result.next is not None and sub.give(result.next.msg_id):
                outgoing.message(rcv_id, sub, result.next)

    begin()
