"""A DEL or NDEL that Redis did not answer: the connection that sent the command hears DELD if it was subscribed.

The script that deletes a queue leaves DELD for every owner but the connection that asked: that client gets OK. Without
Redis' answer, the client gets INTERNAL instead and cannot know whether its subscription still stands.

    DEL ──► no answer ──► INTERNAL        the edge asks Redis for the record, until Redis answers
                             └──────────► gone: DELD        there: nothing, the subscription stands

Redis executes the commands of an edge in their order, and a command that was given up is not sent again. So the record
says what became of the deletion.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import TYPE_CHECKING

from weir.redis.errors import Unavailable
from weir.router.store.records import DeldEvent, QueueRecord

if TYPE_CHECKING:
    from weir.router.session.session import Session

_RETRY = 1.0  # seconds


async def report_if_deleted(session: Session, record: QueueRecord) -> None:
    """Send DELD for the queue and for its notifier if they are gone and the session is still subscribed to them."""
    shared = session.shared
    while not session.closed:
        try:
            found = await shared.store.lookups.get_rcv(record.rcv_id)
        except Unavailable:
            await asyncio.sleep(_RETRY)
            continue
        for entity_id, gen in list(_subscribed(session, record, found)):
            shared.delivery.on_event(DeldEvent(entity_id, session.id, gen))
        return


def _subscribed(session: Session, before: QueueRecord, found: QueueRecord | None) -> Iterator[tuple[bytes, int]]:
    """The ids that are gone since `before` and that the session is subscribed to, with their generations."""
    subscriptions = session.subscriptions
    gone = [] if found is not None else [(before.rcv_id, before.rcv_service)]
    if before.ntf_id is not None and (found is None or found.ntf_id != before.ntf_id):
        gone.append((before.ntf_id, before.ntf_service))
    own_service = None if session.service is None else session.service.service_id
    for entity_id, service_id in gone:
        gen = subscriptions.gen_of(entity_id)
        if gen is not None and (own_service is None or service_id == own_service):
            yield entity_id, gen
