"""The fold: the walk through a service's queues that have a message, page by page, between SUBS and ALLS.

    pull ──► fold_page.lua in several partitions ──► outgoing.waiting ──► … all left ──► pull ──► … ──► ALLS

The outgoing side pulls: the next pages are fetched only when every message of the last pages has left and there is
room for more. ready.py says which partitions are asked. A message that arrives meanwhile is delivered at once, and the
in-flight mark in the queue's record keeps the fold from delivering it a second time. A session that has lost its
service stops at its next page.
"""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from time import monotonic, time
from typing import TYPE_CHECKING

from weir.router.delivery.ready import ReadyWalk
from weir.router.session.subscriptions import Sub
from weir.router.store.records import Entry, FoldProgress, Page
from weir.telemetry.tracing import NULL_SPAN, Span

if TYPE_CHECKING:
    from weir.router.session.session import Session

_ALLS = b"ALLS"
_RETRY = 1.0  # seconds
_PROGRESS = 1.0  # seconds between two reports of a fold's progress


class Fold:
    """One walk through a service's ready queues.

    A fold started by SUBS (with `began`) ends with ALLS; one started after a reconnect does not. With `again`, it also
    delivers messages already marked in flight, because the page that marked them may have been lost.
    """

    __slots__ = (
        "_again",
        "_began",
        "_busy",
        "_epoch",
        "_pending",
        "_reported",
        "_session",
        "_span",
        "_walk",
        "delivered",
        "ready",
        "since",
    )

    def __init__(
        self, session: Session, ready_in: Mapping[int, int], span: Span, began: float | None, *, again: bool
    ) -> None:
        epoch = session.subscriptions.epoch
        assert epoch is not None
        self._session = session
        self._epoch = epoch
        self._span = span
        self._walk = ReadyWalk(ready_in, session.shared.config.queues.fold_page)
        self._pending: dict[bytes, Span] = {}  # queues whose message has not left yet → the span of their page
        self._busy = False
        self._reported = 0.0
        self._began = began
        self._again = again
        self.ready = sum(ready_in.values())
        self.delivered = 0
        self.since = int(time())

    @classmethod
    def start(
        cls,
        session: Session,
        ready_in: Mapping[int, int],
        span: Span = NULL_SPAN,
        began: float | None = None,
        *,
        again: bool,
    ) -> None:
        """Begin a fold and make it the source of the session's outgoing side."""
        fold = cls(session, ready_in, span, began, again=again)
        session.outgoing.source = fold
        session.shared.folds.add(fold)
        fold._report(done=False)
        fold.pull()

    def pull(self) -> None:
        """Fetch the next pages, or finish. The outgoing side calls this when it has room."""
        if self._busy or self._pending:
            return
        self._busy = True
        self._session.shared.spawn(self._fetch_pages())

    def message_left(self, rcv_id: bytes) -> None:
        """The message of this queue has left for the client, or will never leave."""
        if rcv_id in self._pending:
            del self._pending[rcv_id]
            self.delivered += 1
            if not self._pending:
                self.pull()

    def span_of(self, rcv_id: bytes) -> Span:
        """Return the span of the page that brought this queue's message."""
        return self._pending.get(rcv_id, NULL_SPAN)

    def stop(self) -> None:
        """Another session owns the service, or the client has disconnected."""
        self._remove()
        self._span.end("stopped")
        self._span = NULL_SPAN

    def _remove(self) -> None:
        outgoing = self._session.outgoing
        self._session.shared.folds.discard(self)
        if outgoing.source is self:
            outgoing.source = None

    async def _fetch_pages(self) -> None:
        session = self._session
        outgoing = session.outgoing
        if self._walk.ended:
            self._finish()
            return
        span = self._span.child("fold.page")
        pages, complete = await self._walk.step(self._fetch_page)
        if outgoing.source is not self:
            return
        if any(page.fenced for page in pages):
            self.stop()
            return
        span.set("delivered", sum(len(page.entries) for page in pages))
        span.end(None if complete else "unavailable")
        for page in pages:
            for rcv_id, entry in page.entries:
                self._give(rcv_id, entry, span)
        self._report(done=False)
        self._busy = False
        if not complete:
            self._again = True  # a page may have put messages in flight before it was lost
            session.shared.loop.call_later(_RETRY, self._retry)
        elif not self._pending:
            self.pull()
        if self._pending:
            outgoing.pump()

    def _fetch_page(self, partition: int, cursor: int, size: int) -> Awaitable[Page]:
        session = self._session
        shared = session.shared
        assert session.service is not None
        return shared.store.services.fold_page(
            session.service.service_id,
            session.id,
            self._epoch,
            partition,
            cursor,
            size,
            shared.expire_before(int(time())),
            again=self._again,
        )

    def _retry(self) -> None:
        if self._session.outgoing.source is self and not self._session.closed:
            self.pull()

    def _give(self, rcv_id: bytes, entry: Entry, span: Span) -> None:
        session = self._session
        stats, queues = session.shared.stats, session.subscriptions.queues
        sub = queues.get(rcv_id)
        if sub is None:
            sub = queues[rcv_id] = Sub(self._epoch)
        if not sub.prohibit and sub.give(entry.msg_id):
            stats.rcvServicesSubMsg += 1
            self._pending[rcv_id] = span
            session.outgoing.waiting[rcv_id] = (sub, entry)
            return
        stats.rcvServicesSubDuplicate += 1
        if sub.msg_id == entry.msg_id and not sub.sent:
            self._pending[rcv_id] = span  # another path delivers the message: ALLS must follow it

    def _finish(self) -> None:
        self._remove()
        if self._began is None:
            return
        session = self._session
        session.outgoing.push(b"", b"", _ALLS)
        session.shared.stats.folded(monotonic() - self._began, self.delivered, session.use)
        self._report(done=True)
        self._span.child("ALLS").end()
        self._span.end()

    def _report(self, *, done: bool) -> None:
        now = time()
        if self._began is None:
            return
        if not done and now - self._reported < _PROGRESS:
            return
        self._reported = now
        session = self._session
        assert session.service is not None
        store = session.shared.store
        left = 0 if done else max(self.ready - self.delivered, 0)
        progress = FoldProgress(self.ready, self.delivered, left, store.edge.decode(), self.since, done)
        store.registry.set_fold(session.service.service_id, progress)
