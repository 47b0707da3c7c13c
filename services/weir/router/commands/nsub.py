"""NSUB: the session becomes the owner of a queue's notifier, and gets the notifications that wait."""

from __future__ import annotations

from weir.redis.errors import UNAVAILABLE, Unavailable
from weir.router.commands.handler import handles
from weir.router.commands.subscription import SubscriptionHandler
from weir.router.delivery.ownership import count_association, execute_as_owner
from weir.router.store.records import Assoc, NsubResult, QueueRecord, Status
from weir.wire.smp.commands import NSUB, Command


@handles(NSUB)
class NsubHandler(SubscriptionHandler):
    __slots__ = ("_before", "_gen")

    auth_stat = "ntfSubAuth"

    @staticmethod
    def key_of(record: QueueRecord, command: Command) -> bytes | None:
        return record.ntf_key

    def execute(self, record: QueueRecord) -> None:
        session = self.session
        shared, subscriptions = session.shared, session.subscriptions
        service = session.service
        if service is None:
            gen = shared.next_gen()
            self._before = subscriptions.notifiers.get(self.t.entity_id)
            if self._before is not None:
                shared.stats.ntfSubDuplicate += 1
            else:
                shared.stats.ntfSub += 1
                subscriptions.notifiers_asked.add(self.t.entity_id)
            subscriptions.notifiers[self.t.entity_id] = (gen, record.rcv_id)
        elif subscriptions.epoch is None:
            session.spawn(execute_as_owner(self, record, session.incoming.hold()))
            return
        else:
            gen = subscriptions.epoch
        self._gen = gen
        self._record = record
        service_id = None if service is None else service.service_id
        shared.store.notifications.nsub(record, session.id, gen, service_id, self._subscribed)

    def _subscribed(self, result: NsubResult | Unavailable) -> None:
        if result is UNAVAILABLE:
            self.time_out()
            return
        status, pending, assoc = result  # type: ignore[misc]
        session = self.session
        shared, subscriptions = session.shared, session.subscriptions
        ntf_id = self.t.entity_id
        if status is Status.OK:
            if session.service is not None or assoc is Assoc.REMOVED:
                count_association(session, ntf_id, assoc, shared.stats.ntfServices)
            if not self._timed_out:
                subscriptions.notifiers_asked.discard(ntf_id)
                self.answer(session.sok)
            if pending:
                shared.notifications.ready(session.id, self._gen, ntf_id)
            return
        if session.service is None and subscriptions.notifier_gen(ntf_id) == self._gen:
            self._undo(gone=status is Status.GONE)
        self.not_subscribed(status, self._gen)

    def _undo(self, *, gone: bool) -> None:
        """The script has changed nothing: the client's earlier subscription stands, unless the notifier is gone."""
        session, ntf_id = self.session, self.t.entity_id
        notifiers = session.subscriptions.notifiers
        if self._before is not None and not gone:
            notifiers[ntf_id] = self._before
        elif self._before is not None and self._timed_out:
            self.report_deleted(self._gen)
        else:
            session.subscriptions.remove(ntf_id)
