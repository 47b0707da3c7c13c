"""Ownership of services: a session takes over its service, and owns it again after Redis was away.

A session owns its service from the first command that the service signs, or from SUBS.
"""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING

from weir.redis.errors import Unavailable
from weir.router.delivery.fold import Fold
from weir.router.store.records import Assoc, QueueRecord, ServiceTotals
from weir.wire.errors import Simple
from weir.wire.smp.codec import encode_reply
from weir.wire.smp.commands import ServiceRole
from weir.wire.smp.replies import ENDS

if TYPE_CHECKING:
    from weir.router.commands.handler import QueueHandler
    from weir.router.session.session import Session
    from weir.router.stats import ServiceStats
    from weir.runtime.incoming import Hold


_REGISTERED = 43_200.0  # seconds after its handshake in which the service of a session cannot have expired


async def ensure_owner(session: Session) -> ServiceTotals | None:
    """Make this session the owner of its service if it is not yet. Concurrent callers share one takeover.

    Return the service's totals, or None if the session was the owner already. Raises Unavailable.
    """
    subscriptions, shared = session.subscriptions, session.shared
    while subscriptions.takeover is not None:
        await subscriptions.takeover.wait()
    if subscriptions.epoch is not None:
        return None
    assert session.service is not None
    service_id = session.service.service_id
    services = shared.store.services
    async with subscriptions.taking_over(shared.loop, shared.delivery.on_event):
        await _ensure_registered(session)
        result = await services.takeover(service_id, session.id, shared.today())
        if session.closed:
            await services.release_service(service_id, session.id, result.epoch)
            raise Unavailable("the client has disconnected")
        subscriptions.epoch = result.epoch
    return result


async def _ensure_registered(session: Session) -> None:
    """Register the service again if it may have expired. Raises Unavailable.

    Nobody could connect as the service of a queue if that service were not registered.
    """
    service, shared = session.service, session.shared
    if service is None or monotonic() - session.conn.created < _REGISTERED:
        return
    found = await shared.store.registry.ensure_service(
        service.cert_hash, service.role, service.service_id, day=shared.today()
    )
    if isinstance(found, bytes) and found != service.service_id:
        session.conn.close()
        raise Unavailable("the certificate has begun another service since this session began")


async def execute_as_owner(handler: QueueHandler, record: QueueRecord, hold: Hold) -> None:
    """Execute a service's SUB or NSUB once the session owns its service. The commands behind it wait."""
    with hold:
        try:
            await ensure_owner(handler.session)
        except Unavailable:
            handler.fail(Simple.INTERNAL)
        else:
            handler.execute(record)


async def reassert_service(session: Session) -> None:
    """Redis was away: own the service as before, and fold the messages that came meanwhile."""
    subscriptions, shared = session.subscriptions, session.shared
    epoch = subscriptions.epoch
    if session.service is None or epoch is None:
        return
    await _ensure_registered(session)
    services = shared.store.services
    totals = await services.reassert_service(session.service.service_id, session.id, epoch, shared.today())
    if totals is None or session.closed or subscriptions.epoch != epoch:
        return
    if session.service.role is ServiceRole.NOTIFIER:
        shared.spawn(shared.notifications.fold(session, totals.ready_in))
    elif session.outgoing.source is None:
        Fold.start(session, totals.ready_in, again=True)


def lose_service(session: Session, epoch: int) -> None:
    """Another session took the service from this epoch: report the totals with ENDS, and forget them.

    Commands that were refused under an earlier epoch say nothing about the present one.
    """
    if session.service is None or session.subscriptions.epoch != epoch:
        return
    session.end_service()
    count, ids_hash = session.subscriptions.totals.take()
    stats = session.shared.stats
    (stats.rcvServices if session.service.role is ServiceRole.MESSAGING else stats.ntfServices).srvSubEnd += 1
    session.outgoing.event(session.service.service_id, encode_reply(session.framing.version, ENDS(count, ids_hash)))


def count_association(session: Session, entity_id: bytes, assoc: Assoc, stats: ServiceStats) -> None:
    """Count what a SUB or NSUB changed in the service's queues, and add the queue to the totals reported to the client.

    ENDS carries the router's count and hash (rcv-services). For a notifier service both are over notifier ids, as in
    SOKS. The reference adds recipient ids after NSUB and later subtracts notifier ids, so its hash fits neither.
    """
    totals = session.subscriptions.totals
    if assoc is Assoc.REMOVED:
        stats.srvAssocRemoved += 1
    elif assoc is Assoc.DUPLICATE:
        stats.srvAssocDuplicate += 1
        if totals.count == 0:
            stats.srvSubCount += 1
            stats.srvSubQueues += 1
            totals.add(entity_id)
    elif assoc is not Assoc.NONE:
        if totals.count == 0:
            stats.srvSubCount += 1
        stats.srvSubQueues += 1
        if assoc is Assoc.NEW:
            stats.srvAssocNew += 1
        else:
            stats.srvAssocUpdated += 1
        totals.add(entity_id)
