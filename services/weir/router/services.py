"""Services: taking one over, SUBS and NSUBS, and the fold of the messages that wait for it.

A connection owns its service from its first service-signed command, or from SUBS. The fold walks the service's ready
queues in pages, each under flow control, and ends with ALLS; a message that arrives meanwhile is delivered at once, and
the in-flight mark keeps the fold from delivering it again. A connection that lost the service stops at its next page.
"""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic, time
from typing import TYPE_CHECKING

from weir.router.op import SessionOp
from weir.router.stats import ServiceStats
from weir.router.subscriptions import Sub
from weir.store.keys import PARTITIONS
from weir.store.records import Assoc, Entry, FoldProgress, QueueRecord, ServiceTotals, Takeover, Unavailable
from weir.wire.commands import NSUBS, SUBS, ServiceRole
from weir.wire.errors import Simple
from weir.wire.replies import SOKS
from weir.wire.smp import encode_reply

if TYPE_CHECKING:
    from weir.router.connection import Client
    from weir.router.router import Router
    from weir.telemetry.tracing import Span

_ALLS = b"ALLS"
_PARALLEL = 8  # partitions whose pages are asked for at once
_RETRY = 1.0
_PROGRESS = 1.0  # seconds between two reports of a fold's progress

TakenOver = Callable[[QueueRecord, Unavailable | None], None]


class Services:
    __slots__ = ("_router", "folds")

    def __init__(self, router: Router) -> None:
        self._router = router
        self.folds: set[Fold] = set()

    # Ownership.

    def take_over(self, client: Client, done: TakenOver, record: QueueRecord) -> None:
        """Make this connection the service's owner, then go on with a SUB or NSUB."""
        self._router.spawn(self._take_over(client, done, record))

    async def _take_over(self, client: Client, done: TakenOver, record: QueueRecord) -> None:
        try:
            await self.owned(client)
        except Unavailable as error:
            done(record, error)
        else:
            done(record, None)

    async def owned(self, client: Client) -> Takeover | None:
        """Take the service over unless this connection has it; commands that come meanwhile wait for the one."""
        while client.takeover is not None:
            await client.takeover.wait()
        if client.epoch is not None:
            return None
        assert client.service is not None
        async with client.taking_over():
            result: Takeover = await self._router.store.takeover(
                client.service.service_id, client.id, self._router.today()
            )
            if client.closed:
                await self._router.store.release_service(client.service.service_id, client.id, result.epoch)
                raise Unavailable("the client has left")
            client.epoch = result.epoch
        return result

    async def reassert(self, client: Client) -> None:
        """Redis was away: own the service as before, and fold again what came meanwhile."""
        if client.service is None or client.epoch is None:
            return
        store = self._router.store
        epoch = client.epoch
        kept = await store.reassert_service(client.service.service_id, client.id, epoch, self._router.today())
        if not kept or client.closed or client.epoch != epoch:
            return
        if client.service.role is ServiceRole.NOTIFIER:
            await self._router.notifications.fold(client)
        elif client.fold is None:
            client.fold = Fold(client, 0, None, None, again=True)
            client.fold.more()

    def associated(self, client: Client, entity_id: bytes, assoc: Assoc, stats: ServiceStats) -> None:
        """Count what a SUB or NSUB did to the queue's service, and what this connection has been told of.

        ENDS carries the server's count and hash (rcv-services), which for a notifier are over notifier ids, as in SOKS;
        the reference adds recipient ids after NSUB, and takes notifier ids away again: its hash fits neither."""
        totals = client.totals
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


class SubsOp(SessionOp):
    """SUBS, NSUBS."""

    __slots__ = ()

    async def work(self) -> None:
        client, command = self.client, self.t.command
        assert isinstance(command, (SUBS, NSUBS)) and client.service is not None
        router = client.router
        stats = router.stats.rcvServices if isinstance(command, SUBS) else router.stats.ntfServices
        if client.service_subscribed:
            self._repeated(stats)
            return
        began = monotonic()
        tracer = router.tracer
        span = tracer.start("SUBS") if tracer is not None and (client.trace or tracer.sampled()) else None
        try:
            child = None if span is None or tracer is None else tracer.start("takeover", span)
            totals: Takeover | ServiceTotals | None = None
            while totals is None:
                totals = await router.services.owned(client)
                if totals is None:
                    epoch = client.epoch
                    totals = await router.store.service_totals(client.service.service_id)
                    if client.epoch != epoch:
                        totals = None  # lost meanwhile: take it back
            count, ids_hash, ready = totals.count, totals.ids_hash, totals.ready
            if child is not None:
                child.end()
        except Unavailable:
            if span is not None:
                span.end("unavailable")
            self.fail(Simple.INTERNAL)
            return
        if client.service_subscribed:  # another one of the same block was done first
            if span is not None:
                span.end("repeated")
            self._repeated(stats)
            return
        client.service_subscribed = True
        client.totals.set(count, ids_hash)
        kind = stats.drift(command.count, command.ids_hash, count, ids_hash)
        router.store.note_drift(client.service.service_id, kind)
        stats.srvSubCount += 1
        stats.srvSubQueues += count
        self._soks()
        router.stats.subscribed_service(monotonic() - began)
        if span is not None and tracer is not None:
            tracer.start("SOKS", span).end()
            span.set("count", count)
            span.set("ready", ready)
            span.set("drift", kind)
        if client.service.role is ServiceRole.NOTIFIER:
            router.spawn(router.notifications.fold(client))
            if span is not None:
                span.end()
        else:
            before = client.fold
            if before is not None:
                before.stop()
            client.fold = Fold(client, ready, span, began, again=before is not None)
            client.fold.more()

    def _repeated(self, stats: ServiceStats) -> None:
        """Answered from the session, and no second fold."""
        stats.srvSubDuplicate += 1
        self._soks()

    def _soks(self) -> None:
        totals = self.client.totals
        self.answer(encode_reply(self.origin.session.version, SOKS(totals.count, totals.ids_hash)))


class Fold:
    """One walk through a service's ready queues. Without `began` it is not SUBS's, and ends without ALLS. `again`: it
    looks also at what is in flight, of which a page that never arrived may have told."""

    __slots__ = (
        "_again",
        "_began",
        "_busy",
        "_client",
        "_cursors",
        "_epoch",
        "_partition",
        "_pending",
        "_reported",
        "_span",
        "delivered",
        "ready",
        "since",
    )

    def __init__(self, client: Client, ready: int, span: Span | None, began: float | None, *, again: bool) -> None:
        assert client.epoch is not None
        self._client = client
        self._epoch = client.epoch
        self._span = span
        self._partition = 0
        self._cursors: dict[int, int] = {}  # partition → where its next page begins
        self._pending: dict[bytes, Span | None] = {}  # queues whose message has not left yet → their page
        self._busy = False
        self._reported = 0.0
        self._began = began
        self._again = again
        self.ready = ready
        self.delivered = 0
        self.since = int(time())
        client.router.services.folds.add(self)
        self._report(done=False)

    def more(self) -> None:
        """There is room for more: the next pages, or the end."""
        if self._busy or self._pending:
            return
        self._busy = True
        self._client.router.spawn(self._pages())

    def sent(self, rcv_id: bytes) -> None:
        """The message of this queue has left for the client, or will never."""
        if rcv_id in self._pending:
            del self._pending[rcv_id]
            self.delivered += 1
            if not self._pending:
                self.more()

    def page_of(self, rcv_id: bytes) -> Span | None:
        """The page that brought this queue's message, when the fold is traced."""
        return self._pending.get(rcv_id)

    def stop(self) -> None:
        """Another connection has the service, or this one is gone."""
        self._client.router.services.folds.discard(self)
        if self._client.fold is self:
            self._client.fold = None
        if self._span is not None:
            self._span.end("stopped")
            self._span = None

    async def _pages(self) -> None:
        client = self._client
        router = client.router
        assert client.service is not None
        while len(self._cursors) < _PARALLEL and self._partition < PARTITIONS:
            self._cursors[self._partition] = 0
            self._partition += 1
        if not self._cursors:
            self._finish()
            return
        size = max(1, router.config.queues.fold_page // len(self._cursors))
        for partition, cursor in list(self._cursors.items()):
            tracer = router.tracer
            span = tracer.start("fold.page", self._span) if tracer is not None and self._span is not None else None
            try:
                page = await router.store.fold_page(
                    client.service.service_id,
                    client.id,
                    self._epoch,
                    partition,
                    cursor,
                    size,
                    router.expire_before(int(time())),
                    again=self._again,
                )
            except Unavailable:
                if span is not None:
                    span.end("unavailable")
                self._busy = False
                self._again = True  # the page may have put messages in flight before it was lost
                router.loop.call_later(_RETRY, self._retry)
                return
            if client.fold is not self:
                return
            if page.fenced:
                self.stop()
                return
            if span is not None:
                span.set("partition", partition)
                span.set("delivered", len(page.entries))
                span.end()
            if page.cursor is None:
                del self._cursors[partition]
            else:
                self._cursors[partition] = page.cursor
            for rcv_id, entry in page.entries:
                self._give(rcv_id, entry, span)
            if not client.out.room():
                break
        self._report(done=False)
        self._busy = False
        if not self._pending:
            self.more()
        else:
            client.out.pump()

    def _retry(self) -> None:
        if self._client.fold is self and not self._client.closed:
            self.more()

    def _give(self, rcv_id: bytes, entry: Entry, span: Span | None) -> None:
        client = self._client
        stats = client.router.stats
        sub = client.subs.get(rcv_id)
        if sub is None:
            sub = client.subs[rcv_id] = Sub(self._epoch)
        if not sub.prohibit and sub.give(entry.msg_id):
            stats.rcvServicesSubMsg += 1
            self._pending[rcv_id] = span
            client.out.waiting[rcv_id] = (sub, entry)
            return
        stats.rcvServicesSubDuplicate += 1
        if sub.msg_id == entry.msg_id and not sub.sent:
            self._pending[rcv_id] = span  # on its way by another path: ALLS comes behind it

    def _finish(self) -> None:
        client = self._client
        client.fold = None
        client.router.services.folds.discard(self)
        if self._began is None:
            return
        client.push(b"", b"", _ALLS)
        client.router.stats.folded(monotonic() - self._began)
        self._report(done=True)
        if self._span is not None:
            tracer = client.router.tracer
            if tracer is not None:
                tracer.start("ALLS", self._span).end()
            self._span.end()

    def _report(self, *, done: bool) -> None:
        now = time()
        if self._began is None:
            return
        if not done and now - self._reported < _PROGRESS:
            return
        self._reported = now
        client = self._client
        assert client.service is not None
        left = 0 if done else max(self.ready - self.delivered, 0)
        client.router.store.set_fold(
            client.service.service_id,
            FoldProgress(self.ready, self.delivered, left, client.router.store.edge.decode(), self.since, done),
        )
