"""The common part of SUB and NSUB: what follows when the store refuses a subscription."""

from weir.router.commands.handler import QueueHandler
from weir.router.delivery.ownership import lose_service
from weir.router.store.records import DeldEvent, Status


class SubscriptionHandler(QueueHandler):
    __slots__ = ()

    def not_subscribed(self, status: Status, gen: int) -> None:
        """The store refused a subscription of generation `gen`: fetch the credentials and try again, or answer AUTH if
        the queue is gone. A late result needs no answer."""
        if self._timed_out:
            return
        if status is Status.GONE:
            self.queue_is_gone()
            return
        if status is Status.FENCED:
            lose_service(self.session, gen)
        self.retry_stale()

    def report_deleted(self, gen: int) -> None:
        """Send DELD to a client that had an earlier subscription.

        DELD came under the earlier generation and was dropped, and INTERNAL does not say that the queue is gone.
        """
        self.session.shared.delivery.on_event(DeldEvent(self.t.entity_id, self.session.id, gen))
