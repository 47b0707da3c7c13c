"""An edge's side of the store for tests: hot calls awaited, events kept in order of arrival."""

import asyncio
import itertools
import os
from collections.abc import Callable
from typing import Any

from tests.support.store_edge import StoreEdge
from weir.crypto.keys import generate
from weir.router.store.records import (
    AckResult,
    Entry,
    NewLink,
    NewNotifier,
    NewQueue,
    NsubResult,
    NtfItem,
    Owner,
    QueueRecord,
    SendResult,
    Status,
    SubResult,
    TakenNtfs,
)
from weir.router.store.store import Store, StoreConfig
from weir.wire.smp.commands import QueueMode

PLACEMENT_KEY = bytes(range(32))
KEY = generate("ed25519").spki
TODAY = 20000
NOW = 1_750_000_000
BODY = b"b" * 100

_generations = itertools.count(1)
_conns = itertools.count(1)


def awaited(start: Callable[[Callable[[Any], None]], None]) -> "asyncio.Future[Any]":
    """The result of a call that takes a callback; UNAVAILABLE too is a result."""
    future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
    start(lambda result: None if future.done() else future.set_result(result))
    return future


def new_conn() -> int:
    return next(_conns)


def new_gen() -> int:
    return next(_generations)


class TestEdge(StoreEdge):
    store: Store

    # Calls

    async def new(self, **given: Any) -> QueueRecord:
        result = await self.store.queues.new(self.new_queue(**given))
        assert result.status is Status.OK, result
        assert result.record is not None
        return result.record

    def new_queue(
        self,
        *,
        ntf: bool = False,
        owner: Owner | None = None,
        service: bytes | None = None,
        link: NewLink | None = None,
        mode: QueueMode | None = QueueMode.MESSAGING,
        snd_id: bytes | None = None,
        request: bytes = b"",
        answer: bytes = b"",
    ) -> NewQueue:
        rcv_id, snd_id, ntf_id = self.store.placement.new_ids(snd_id, ntf)
        notifier = NewNotifier(ntf_id, KEY, os.urandom(32)) if ntf_id else None
        return NewQueue(
            rcv_id,
            snd_id,
            KEY,
            os.urandom(32),
            TODAY,
            mode=mode,
            notifier=notifier,
            link=link,
            owner=owner,
            service=service,
            request=request,
            answer=answer,
        )

    async def send(
        self,
        rec: QueueRecord,
        msg_id: bytes | None = None,
        *,
        ts: int = NOW,
        body: bytes = BODY,
        ntf: bool = False,
        expire_before: float = 0,
        trace: bytes = b"",
        day: int = TODAY,
    ) -> SendResult:
        item = NtfItem(ts, os.urandom(24), b"meta") if ntf else None
        return await self.send_item(
            rec, msg_id, item, ts=ts, body=body, expire_before=expire_before, trace=trace, day=day
        )

    async def send_item(
        self,
        rec: QueueRecord,
        msg_id: bytes | None,
        item: NtfItem | None,
        *,
        ts: int = NOW,
        body: bytes = BODY,
        expire_before: float = 0,
        trace: bytes = b"",
        day: int = TODAY,
    ) -> SendResult:
        chosen = msg_id or os.urandom(24)
        result: SendResult = await awaited(
            lambda done: self.store.messages.send(
                rec, chosen, ts, item is not None, body, day, expire_before, item, trace, done
            )
        )
        return result

    async def ack(
        self, rec: QueueRecord, conn: int, gen: int, msg_id: bytes = b"", *, expire_before: int = 0, day: int = TODAY
    ) -> AckResult:
        result: AckResult = await awaited(
            lambda done: self.store.messages.ack(rec, conn, gen, msg_id, expire_before, day, done)
        )
        return result

    async def sub(
        self,
        rec: QueueRecord,
        conn: int,
        gen: int,
        service: bytes | None = None,
        *,
        expire_before: int = 0,
        day: int = TODAY,
    ) -> SubResult:
        result: SubResult = await awaited(
            lambda done: self.store.subscriptions.sub(rec, conn, gen, service, day, expire_before, done)
        )
        return result

    async def sub_many(
        self,
        recs: list[QueueRecord],
        conn: int,
        gen: int,
        service: bytes | None = None,
        *,
        expire_before: int = 0,
    ) -> list[SubResult]:
        """The results in the order of the records."""
        results: dict[int, Any] = {}

        def start(done: Callable[[Any], None]) -> None:
            def on_result(place: int, result: Any) -> None:
                results[place] = result
                if len(results) == len(recs):
                    done(None)

            self.store.subscriptions.sub_many(recs, conn, gen, service, TODAY, expire_before, on_result)

        await awaited(start)
        return [results[place] for place in range(len(recs))]

    async def nsub(self, rec: QueueRecord, conn: int, gen: int, service: bytes | None = None) -> NsubResult:
        result: NsubResult = await awaited(lambda done: self.store.notifications.nsub(rec, conn, gen, service, done))
        return result

    async def take(self, *asked: Any, **options: Any) -> list[NtfItem]:
        return (await self.taken(*asked, **options)).items

    async def taken(
        self,
        rec: QueueRecord,
        conn: int,
        gen: int,
        last: bytes | None = None,
        *,
        service: bytes | None = None,
        expire_before: int = 0,
    ) -> TakenNtfs:
        assert rec.ntf_id is not None
        ntf_id = rec.ntf_id
        result: TakenNtfs = await awaited(
            lambda done: self.store.notifications.take_ntfs(
                ntf_id, conn, gen, service or rec.rcv_id, service is not None, last, expire_before, done
            )
        )
        return result

    async def body(self, rcv_id: bytes, msg_id: bytes) -> bytes | None:
        result: bytes | None = await awaited(lambda done: self.store.messages.body(rcv_id, msg_id, done))
        return result

    async def rcv(self, rcv_id: bytes) -> QueueRecord | None:
        result: QueueRecord | None = await awaited(lambda done: self.store.lookups.fetch_rcv(rcv_id, done))
        return result

    async def snd(self, snd_id: bytes) -> QueueRecord | None:
        result: QueueRecord | None = await awaited(lambda done: self.store.lookups.fetch_snd(snd_id, done))
        return result

    async def release(self, conn: int, rcv_ids: list[bytes], ntf_rcv_ids: list[bytes] | None = None) -> None:
        await awaited(lambda done: self.store.subscriptions.release(rcv_ids, ntf_rcv_ids or [], conn, done))

    async def fold(self, service: bytes, conn: int, epoch: int, *, page: int = 50) -> "list[tuple[bytes, Entry]]":
        """All pages of all partitions."""
        entries: list[tuple[bytes, Entry]] = []
        for p in range(64):
            cursor: int | None = 0
            while cursor is not None:
                got = await self.store.services.fold_page(service, conn, epoch, p, cursor, page, 0)
                assert not got.fenced
                entries += got.entries
                cursor = got.cursor
        return entries


async def open_edge(url: str, key: bytes = PLACEMENT_KEY, **settings: Any) -> TestEdge:
    return TestEdge(await Store.open(StoreConfig(url, key, **settings)))
