"""One command of a client on its way: its queue found, verified, done, answered.

The hot commands run as plain callbacks: with cached credentials a command is verified at once and its script is called
with the revision that was verified; STALE makes it fetch, verify and call again. An authorisation that fails always
costs one fetch and one verification, whether the queue was in the cache, in Redis or nowhere, so that the time of an
AUTH error tells nothing.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import lru_cache
from typing import TYPE_CHECKING, ClassVar, Protocol

from weir.crypto.authenticator import DUMMY_X25519
from weir.router.cache import Cache
from weir.router.verification import Verifier
from weir.store.packing import parse_record, record_fields
from weir.store.records import UNAVAILABLE, EntityStatus, Entry, NewQueue, QueueRecord, Status, Unavailable
from weir.wire.errors import ErrorType, Simple
from weir.wire.replies import ERR
from weir.wire.session import Session
from weir.wire.smp import encode_reply
from weir.wire.transmission import ClientTransmission

if TYPE_CHECKING:
    from weir.router.connection import Client
    from weir.router.subscriptions import Sub

OK = b"OK"
# A queue that is there costs its parsing; one that is not has to cost it as well.
_NOBODYS = record_fields(NewQueue(bytes(24), bytes(24), DUMMY_X25519.spki, bytes(32), 0), b"edge:1:1")
_TRIES = 64  # a queue whose credentials change under a command this often is somebody's loop


@lru_cache(maxsize=1024)
def encode_error(version: int, error: ErrorType) -> bytes:
    return encode_reply(version, ERR(error))


class Origin(Protocol):
    """Where a command came from, and where its answer goes: a connection, a block of many commands, or a proxy."""

    session: Session
    verifier: Verifier

    def put(self, index: int, corr_id: bytes, entity_id: bytes, reply: bytes) -> None: ...

    def answer(self, op: Op, reply: bytes) -> None: ...

    def answer_sub(self, op: Op, reply: bytes, sub: Sub, entry: Entry) -> None:
        """Answer a subscription that found a message."""

    def detach(self, op: Op) -> None:
        """The answer will come on its own, later (`Client.push`)."""


class Party:
    """How queues are found by one kind of id, and the credentials of those found last."""

    __slots__ = ("cache", "fetch")

    def __init__(
        self, fetch: Callable[[bytes, Callable[[QueueRecord | Unavailable | None], None]], None], limit: int
    ) -> None:
        self.fetch = fetch
        self.cache: Cache[QueueRecord] = Cache(limit)


class Op:
    """A command and its answer."""

    __slots__ = ("client", "index", "origin", "t")

    def __init__(self, client: Client, origin: Origin, t: ClientTransmission, index: int = 0) -> None:
        self.client = client
        self.origin = origin
        self.t = t
        self.index = index

    def begin(self) -> None:
        raise NotImplementedError

    def step(self) -> None:
        """The part that costs a public-key operation; called in a slice of the router's time."""
        raise NotImplementedError

    def answer(self, reply: bytes) -> None:
        self.origin.answer(self, reply)

    def fail(self, error: ErrorType) -> None:
        self.origin.answer(self, encode_error(self.origin.session.version, error))


class SessionOp(Op):
    """A command without a queue (NEW, SUBS, NSUBS): verified by its own key or the service's, then done."""

    __slots__ = ()

    def begin(self) -> None:
        self.client.hold += 1
        self.client.router.scheduler.add(self.client, self)

    def step(self) -> None:
        verifier = self.origin.verifier
        if self.t.service_sig is not None:
            verifier.look_ahead(self.t, self.client.backlog)
        error = verifier.other(self.t) or self.prepare()
        if error is None:
            self.client.spawn(self._work())
        else:
            self.fail(error)
            self.client.release()

    def prepare(self) -> ErrorType | None:
        """What else costs public-key operations, so that it is done in slices, too; the error when it is refused."""
        return None

    async def _work(self) -> None:
        try:
            await self.work()
        finally:
            self.client.release()

    async def work(self) -> None:
        raise NotImplementedError


class QueueOp(Op):
    """A command on a queue."""

    __slots__ = ("_cached", "_late", "_record", "_rev", "_tries")

    auth_stat: ClassVar[str | None] = None  # counts AUTH errors of this command
    cached: ClassVar[bool] = True  # whether cached credentials will do

    def __init__(self, client: Client, origin: Origin, t: ClientTransmission, index: int = 0) -> None:
        self.client = client  # as Op does, without a call
        self.origin = origin
        self.t = t
        self.index = index
        self._tries = 0
        self._cached = False
        self._late = False  # answered INTERNAL: what the store still says is for the subscription, not for the client
        self._record: QueueRecord | None = None

    def _party(self) -> Party:
        return self.client.router.rcv

    def _key(self, record: QueueRecord) -> bytes | None:
        """The key that most likely authorises this."""
        return record.rcv_keys[0]

    def _taken_over(self, record: QueueRecord, error: Unavailable | None) -> None:
        """The session owns its service, which a SUB or NSUB of a service waits for: on with the command."""
        if error is None:
            self.run(record)
        else:
            self.fail(Simple.INTERNAL)
        self.client.release()

    def run(self, record: QueueRecord) -> None:
        """Do it: it is verified against `record`."""
        raise NotImplementedError

    def begin(self) -> None:
        t = self.t
        party = self._party()
        record = party.cache.get(t.entity_id) if self.cached else None
        if record is None or record.status is not EntityStatus.ACTIVE:  # what is refused is refused as of now
            self.client.hold += 1
            party.fetch(t.entity_id, self._fetched)
            return
        verifier, key = self.origin.verifier, self._key(record)
        behind = bool(self.client.backlog)  # commands of the same connection keep their order
        authorised = None if behind else verifier.at_once(t, key)
        if authorised is None or not (authorised or len(record.rcv_keys) == 1):
            if behind or not verifier.is_cheap(t, key):
                self._cached = True
                self._record = record
                self.client.hold += 1
                self.client.router.scheduler.add(self.client, self)
                return
            authorised = verifier.queue(t, record) is None
        if authorised:
            self.run(record)
            return
        self._rev = record.rev
        self.client.hold += 1
        party.fetch(t.entity_id, self._refetched)

    def step(self) -> None:
        record = self._record
        verifier = self.origin.verifier
        if record is None:
            parse_record(b"", 0, _NOBODYS)
            self._denied(verifier.missing(self.t))
            return
        if self.t.service_sig is not None:
            verifier.look_ahead(self.t, self.client.backlog)
        error = verifier.queue(self.t, record)
        if error is None:
            if not self._cached:
                self._party().cache.put(self.t.entity_id, record)
            self.run(record)
            self.client.release()
        elif self._cached:
            self._cached = False
            self._rev = record.rev
            self._party().fetch(self.t.entity_id, self._refetched)
        else:
            self._denied(error)

    def stale(self) -> None:
        """The queue's credentials have changed since they were fetched: from the beginning."""
        self._tries += 1
        party = self._party()
        party.cache.drop(self.t.entity_id)
        if self._tries > _TRIES:
            self.fail(Simple.INTERNAL)
            return
        self.client.hold += 1
        self._cached = False
        party.fetch(self.t.entity_id, self._fetched)

    def gone(self) -> None:
        """The queue was deleted since its credentials were fetched."""
        self._party().cache.drop(self.t.entity_id)
        self.fail(Simple.AUTH)

    def too_late(self) -> None:
        """The store did not answer in time. The script may run yet, and what it puts in flight has to be sent."""
        self._late = True
        self.fail(Simple.INTERNAL)

    def _fetched(self, record: QueueRecord | Unavailable | None) -> None:
        if record is UNAVAILABLE:
            self._unavailable()
            return
        self._record = record  # type: ignore[assignment]
        self.client.router.scheduler.add(self.client, self)

    def _refetched(self, record: QueueRecord | Unavailable | None) -> None:
        """The cached credentials did not fit: the queue's own, as they are now, decide."""
        if record is UNAVAILABLE:
            self._unavailable()
        elif record is None:
            self._denied(Simple.AUTH)
        elif record.rev == self._rev:  # type: ignore[union-attr]
            self._denied(self.origin.verifier.session(self.t) or Simple.AUTH)
        else:
            self._record = record  # type: ignore[assignment]
            self.client.router.scheduler.add(self.client, self)

    def _denied(self, error: ErrorType) -> None:
        if error is Simple.AUTH and self.auth_stat is not None:
            stats = self.client.router.stats
            setattr(stats, self.auth_stat, getattr(stats, self.auth_stat) + 1)
        self.fail(error)
        self.client.release()

    def _unavailable(self) -> None:
        self.fail(Simple.INTERNAL)
        self.client.release()


class ColdOp(QueueOp):
    """A command that is rare enough for a fetch and a task; later commands of the connection wait for it."""

    __slots__ = ()

    cached = False

    def run(self, record: QueueRecord) -> None:
        self.client.hold += 1
        self.client.spawn(self._work(record))

    async def _work(self, record: QueueRecord) -> None:
        try:
            await self.work(record)
            day = self.client.router.today()
            if record.day != day and isinstance(record.status, EntityStatus):  # of a blocked queue only SEND notes it
                await self.client.router.store.update_day(record, day)
        except Unavailable:
            pass  # only the day is not noted
        finally:
            self.client.release()

    async def work(self, record: QueueRecord) -> None:
        raise NotImplementedError

    async def status_of(self, call: Awaitable[Status]) -> Status | None:
        """The outcome of a store's call; one that is not OK has been answered."""
        try:
            status = await call
        except Unavailable:
            self.fail(Simple.INTERNAL)
            return None
        if status is not Status.OK:
            self.not_ok(status)
        return status

    def not_ok(self, status: Status) -> None:
        if status is Status.STALE:
            self.stale()
        elif status is Status.GONE:
            self.gone()
        else:
            self.fail(Simple.AUTH)
