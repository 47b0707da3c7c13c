"""NKEY: a queue gets a notifier id. A previous notifier id goes, with its notifications."""

from __future__ import annotations

from weir.crypto.keys import dh, generate
from weir.redis.errors import Unavailable
from weir.router.commands.handler import RareQueueHandler, handles
from weir.router.store.records import NewNotifier, QueueRecord, Status
from weir.wire.errors import Simple
from weir.wire.smp.codec import encode_reply
from weir.wire.smp.commands import NKEY
from weir.wire.smp.replies import NID

_TRIES = 3


@handles(NKEY)
class NkeyHandler(RareQueueHandler):
    __slots__ = ()

    async def work(self, record: QueueRecord) -> None:
        shared, command = self.session.shared, self.t.command
        assert isinstance(command, NKEY)
        keys = generate("x25519")
        secret = dh(command.dh_key, keys.private)
        shared.forget(record)
        for _ in range(_TRIES):
            notifier = NewNotifier(shared.store.placement.draw(record.partition), command.auth_key, secret)
            try:
                status = (await shared.store.notifications.set_notifier(record, notifier, self.session.id)).status
            except Unavailable:
                break
            if status is Status.OK:
                shared.stats.ntfCreated += 1
                self.answer(encode_reply(self.origin.framing.version, NID(notifier.ntf_id, keys.public)))
                return
            if status is not Status.DUPLICATE:
                self.not_ok(status)
                return
        self.fail(Simple.INTERNAL)
