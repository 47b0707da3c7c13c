"""KEY and SKEY: the sender's key is set.

KEY comes from the recipient. SKEY comes from the sender, if the queue's mode allows it.
"""

from __future__ import annotations

from weir.router.commands.handler import OK, RareQueueHandler, handles
from weir.router.store.records import QueueRecord
from weir.wire.smp.commands import KEY, SKEY, Command


@handles(KEY)
class KeyHandler(RareQueueHandler):
    __slots__ = ()

    async def work(self, record: QueueRecord) -> None:
        command = self.t.command
        assert isinstance(command, (KEY, SKEY))
        if await secured(self, record, command.key):
            self.answer(OK)


@handles(SKEY)
class SkeyHandler(KeyHandler):
    __slots__ = ()

    @staticmethod
    def key_of(record: QueueRecord, command: Command) -> bytes | None:
        assert isinstance(command, SKEY)
        return command.key


async def secured(handler: RareQueueHandler, record: QueueRecord, key: bytes) -> bool:
    """Set the sender's key. Return False if the command is answered or retried instead."""
    shared = handler.session.shared
    if not await handler.succeeded(shared.store.queues.secure(record, key)):
        return False
    shared.forget(record)
    shared.stats.qSecured += 1
    return True
