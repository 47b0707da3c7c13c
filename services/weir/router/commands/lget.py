"""LGET and LKEY: the data behind a short link, to whoever knows its id (LGET) or to the queue's sender (LKEY)."""

from __future__ import annotations

from weir.redis.errors import Unavailable
from weir.router.commands.handler import RareQueueHandler, handles
from weir.router.commands.key import secured
from weir.router.store.records import QueueRecord
from weir.wire.errors import Simple
from weir.wire.smp.codec import encode_reply
from weir.wire.smp.commands import LGET, LKEY, Command
from weir.wire.smp.replies import LNK


@handles(LGET)
class LgetHandler(RareQueueHandler):
    __slots__ = ()

    async def work(self, record: QueueRecord) -> None:
        try:
            data = await self.session.shared.store.links.get_link_data(record)
        except Unavailable:
            self.fail(Simple.INTERNAL)
            return
        if data is None or record.link_id != self.t.entity_id:
            self.fail(Simple.AUTH)
        else:
            self.answer(encode_reply(self.origin.framing.version, LNK(record.snd_id, data)))


@handles(LKEY)
class LkeyHandler(LgetHandler):
    """Sets the sender's key, as SKEY does, and answers with the link's data."""

    __slots__ = ()

    @staticmethod
    def key_of(record: QueueRecord, command: Command) -> bytes | None:
        assert isinstance(command, LKEY)
        return command.key

    async def work(self, record: QueueRecord) -> None:
        command = self.t.command
        assert isinstance(command, LKEY)
        if await secured(self, record, command.key):
            await LgetHandler.work(self, record)
