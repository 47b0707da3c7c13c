"""LSET, LDEL, LKEY and LGET: the data behind a queue's short link."""

from __future__ import annotations

from weir.router.op import OK, ColdOp, Party
from weir.router.queues import secured
from weir.router.verification import is_secured_messaging
from weir.store.records import EntityStatus, QueueRecord, Status, Unavailable
from weir.wire.commands import LKEY, LSET
from weir.wire.errors import Blocked, Simple
from weir.wire.replies import LNK
from weir.wire.smp import encode_reply


class LsetOp(ColdOp):
    __slots__ = ()

    async def work(self, record: QueueRecord) -> None:
        command = self.t.command
        assert isinstance(command, LSET)
        if not isinstance(record.status, EntityStatus):
            self.fail(Blocked(record.status))
        elif is_secured_messaging(record) or record.link_id not in (None, command.link_id):
            self.fail(Simple.AUTH)  # a link id never changes
        else:
            router = self.client.router
            if await self.status_of(router.store.set_link(record, command.link_id, command.data)) is Status.OK:
                router.forget(record)
                self.answer(OK)


class LdelOp(ColdOp):
    __slots__ = ()

    async def work(self, record: QueueRecord) -> None:
        router = self.client.router
        if not isinstance(record.status, EntityStatus):
            self.fail(Blocked(record.status))
        elif await self.status_of(router.store.delete_link(record)) is Status.OK:
            router.forget(record)
            self.answer(OK)


class _LinkOp(ColdOp):
    """By the link's id."""

    __slots__ = ()

    def _party(self) -> Party:
        return self.client.router.link

    async def _link(self, record: QueueRecord) -> None:
        try:
            data = await self.client.router.store.get_link_data(record)
        except Unavailable:
            self.fail(Simple.INTERNAL)
            return
        if data is None or record.link_id != self.t.entity_id:
            self.fail(Simple.AUTH)
        else:
            self.answer(encode_reply(self.origin.session.version, LNK(record.snd_id, data)))


class LkeyOp(_LinkOp):
    __slots__ = ()

    def _key(self, record: QueueRecord) -> bytes | None:
        command = self.t.command
        assert isinstance(command, LKEY)
        return command.key

    async def work(self, record: QueueRecord) -> None:
        command = self.t.command
        assert isinstance(command, LKEY)
        if await secured(self, record, command.key):
            await self._link(record)


class LgetOp(_LinkOp):
    __slots__ = ()

    async def work(self, record: QueueRecord) -> None:
        if isinstance(record.status, EntityStatus):
            await self._link(record)
        else:
            self.fail(Blocked(record.status))
