"""SUBS and NSUBS: a service subscribes to all its queues or notifiers at once, and gets what waits for them."""

from __future__ import annotations

from time import monotonic

from weir.redis.errors import Unavailable
from weir.router.commands.handler import StandaloneHandler, handles
from weir.router.delivery.fold import Fold
from weir.router.delivery.ownership import ensure_owner
from weir.router.stats import ServiceStats
from weir.router.store.records import ServiceTotals
from weir.telemetry.tracing import Span
from weir.wire.errors import Simple
from weir.wire.smp.codec import encode_reply
from weir.wire.smp.commands import NSUBS, SUBS, ServiceRole
from weir.wire.smp.replies import SOKS


@handles(SUBS, NSUBS)
class SubsHandler(StandaloneHandler):
    __slots__ = ()

    traces_itself = True

    async def execute(self) -> None:
        session, command = self.session, self.t.command
        assert isinstance(command, (SUBS, NSUBS)) and session.service is not None
        shared, subscriptions = session.shared, session.subscriptions
        stats = shared.stats.rcvServices if isinstance(command, SUBS) else shared.stats.ntfServices
        if subscriptions.service_subscribed:
            self._repeat(stats)
            return
        began = monotonic()
        span = shared.tracer.sample("SUBS", always=session.traced)
        try:
            totals = await self._totals(span)
        except Unavailable:
            span.end("unavailable")
            self.fail(Simple.INTERNAL)
            return
        if subscriptions.service_subscribed:  # another SUBS of the same block was faster
            span.end("repeated")
            self._repeat(stats)
            return
        subscriptions.service_subscribed = True
        subscriptions.totals.set(totals.count, totals.ids_hash)
        drift = stats.drift(command.count, command.ids_hash, totals.count, totals.ids_hash)
        shared.store.registry.note_drift(session.service.service_id, drift)
        if session.use is not None:
            session.use.drift[drift] += 1
        stats.srvSubCount += 1
        stats.srvSubQueues += totals.count
        self._answer_totals()
        shared.stats.subscribed_service(monotonic() - began)
        span.child("SOKS").end()
        span.set("count", totals.count)
        span.set("ready", totals.ready)
        span.set("drift", drift)
        if session.service.role is ServiceRole.NOTIFIER:
            shared.spawn(shared.notifications.fold(session, totals.ready_in))
            span.end()
        else:
            before = session.outgoing.source
            if before is not None:
                before.stop()
            Fold.start(session, totals.ready_in, span, began, again=before is not None)

    async def _totals(self, span: Span) -> ServiceTotals:
        """Make the session the service's owner. Return the service's totals."""
        session = self.session
        assert session.service is not None
        child = span.child("takeover")
        totals: ServiceTotals | None = None
        while totals is None:
            totals = await ensure_owner(session)
            if totals is None:
                epoch = session.subscriptions.epoch
                totals = await session.shared.store.services.service_totals(session.service.service_id)
                if session.subscriptions.epoch != epoch:
                    totals = None  # the session lost the service meanwhile: take it over again
        child.end()
        return totals

    def _repeat(self, stats: ServiceStats) -> None:
        """Answer a repeated SUBS from the session, without a second fold."""
        stats.srvSubDuplicate += 1
        self._answer_totals()

    def _answer_totals(self) -> None:
        totals = self.session.subscriptions.totals
        self.answer(encode_reply(self.origin.framing.version, SOKS(totals.count, totals.ids_hash)))
