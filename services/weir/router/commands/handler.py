"""How a command is handled: its queue found, the command verified, executed and answered.

    begin ──► cached record? ──yes──► verify at once ──► execute ──► store ──► answer
                 │ no                   │ needs a public-key operation, or commands wait already
                 ▼                      ▼
              fetch record ──────► the connection's turn (`step`) ──► verify ──► execute …

The hot commands run as plain callbacks. With cached credentials a command is verified at once, and its script is called
with the revision that was verified. STALE makes the handler fetch the record, verify and call the script again.

A failed authorisation always costs one fetch and one verification, whether the queue was in the cache, in Redis or
nowhere, so the time of an AUTH error reveals nothing.

A handler class registers for its command with `@handles`. The declaration of the command (weir/wire/smp/commands.py)
says by which id its queue is found.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from functools import lru_cache
from typing import TYPE_CHECKING, ClassVar, Protocol, TypeVar

from weir.crypto.authenticator import DUMMY_X25519
from weir.redis.errors import UNAVAILABLE, Unavailable
from weir.router.commands.answered import answer_failure
from weir.router.commands.verification import Verifier
from weir.router.store.packing import parse_record, record_fields
from weir.router.store.records import EntityStatus, Entry, NewQueue, QueueRecord, Status
from weir.runtime.verification import Ahead
from weir.wire.errors import Blocked, ErrorType, Simple
from weir.wire.smp.codec import encode_reply
from weir.wire.smp.commands import DECLARATIONS, Command
from weir.wire.smp.replies import ERR
from weir.wire.smp.session import Session as Framing
from weir.wire.smp.transmission import ClientTransmission

if TYPE_CHECKING:
    from weir.router.commands.credentials import Credentials
    from weir.router.session.session import Session
    from weir.router.session.subscriptions import Sub
    from weir.runtime.incoming import Hold

OK = b"OK"
# Parse a dummy record for a missing queue, so that a miss takes as long as a hit.
_DUMMY_RECORD = record_fields(NewQueue(bytes(24), bytes(24), DUMMY_X25519.spki, bytes(32), 0), b"edge:1:1")
_TRIES = 64  # give up after this many STALE answers: someone is changing the queue's keys in a loop


@lru_cache(maxsize=1024)
def encode_error(version: int, error: ErrorType) -> bytes:
    return encode_reply(version, ERR(error))


class Origin(Protocol):
    """Where a command came from and where its answer goes: a session, a block of several commands, or a proxy."""

    framing: Framing
    verifier: Verifier

    def put(self, index: int, corr_id: bytes, entity_id: bytes, reply: bytes) -> None:
        """Answer a transmission that has no handler."""

    def answer(self, handler: Handler, reply: bytes) -> None: ...

    def answer_sub(self, handler: Handler, reply: bytes, sub: Sub, entry: Entry) -> None:
        """Answer a subscription that found a message."""

    def detach(self, handler: Handler) -> None:
        """The answer will come later, apart from the command's block (`Outgoing.push`)."""


HANDLERS: dict[type[Command], type[Handler]] = {}
H = TypeVar("H", bound="Handler")


def handles(*kinds: type[Command]) -> Callable[[type[H]], type[H]]:
    """Register a class as the handler of declared commands."""

    def register(handler: type[H]) -> type[H]:
        for kind in kinds:
            if kind not in DECLARATIONS or kind in HANDLERS:
                raise TypeError(f"{kind.__name__} is not declared, or has a handler already")
            HANDLERS[kind] = handler
        return handler

    return register


class Handler(ABC):
    """One command and its answer."""

    __slots__ = ("index", "origin", "session", "t")

    traces_itself: ClassVar[bool] = False  # the handler begins the command's span, in sessions traced whole as well

    def __init__(self, session: Session, origin: Origin, t: ClientTransmission, index: int = 0) -> None:
        self.session = session
        self.origin = origin
        self.t = t
        self.index = index

    @abstractmethod
    def begin(self) -> None: ...

    def answer(self, reply: bytes) -> None:
        self.origin.answer(self, reply)

    def fail(self, error: ErrorType) -> None:
        self.session.shared.answers.failed(self.t.command.__class__, error)
        self.origin.answer(self, encode_error(self.origin.framing.version, error))


class PublicKeyHandler(Handler):
    """A command that costs a public-key operation, which waits for the connection's turn."""

    __slots__ = ("ahead",)

    def __init__(self, session: Session, origin: Origin, t: ClientTransmission, index: int = 0) -> None:
        super().__init__(session, origin, t, index)
        self.ahead: Ahead | None = None

    @abstractmethod
    def step(self) -> None:
        """Do the part that costs a public-key operation, when it is the connection's turn."""

    def likely_key(self) -> bytes | None:
        """Return the key that will most likely authorise this, so that its secret can be computed with others."""
        return None


class StandaloneHandler(PublicKeyHandler):
    """A command without a queue (NEW, SUBS, NSUBS): verified by its own key or the service's key, then executed."""

    __slots__ = ("_hold",)

    _hold: Hold

    def begin(self) -> None:
        self._hold = self.session.incoming.hold()
        self.session.incoming.share.add(self)

    def step(self) -> None:
        verifier = self.origin.verifier
        verifier.look_ahead(self, self.session.incoming.share.waiting)
        error = verifier.other(self.t, self.ahead) or self.prepare()
        if error is None:
            self.session.spawn(self._execute())
        else:
            self.fail(error)
            self._hold.release()

    def prepare(self) -> ErrorType | None:
        """Do further public-key operations in this turn. Return the error if the command is refused."""
        return None

    async def _execute(self) -> None:
        with self._hold:
            await answer_failure(self, self.execute())

    @abstractmethod
    async def execute(self) -> None: ...


class QueueHandler(PublicKeyHandler):
    """A command on a queue."""

    __slots__ = ("_credentials", "_hold", "_record", "_rev", "_timed_out", "_tries", "_verified_cached")

    auth_stat: ClassVar[str | None] = None  # the counter of this command's AUTH errors
    uses_cache: ClassVar[bool] = True  # whether cached credentials are good enough

    def __init__(self, session: Session, origin: Origin, t: ClientTransmission, index: int = 0) -> None:
        self.session = session  # as Handler.__init__ does, without a call
        self.origin = origin
        self.t = t
        self.index = index
        self.ahead = None
        self._credentials: Credentials = session.shared.credentials[t.command.__class__]
        self._hold: Hold | None = None
        self._tries = 0
        self._verified_cached = False
        self._timed_out = False  # answered INTERNAL: a late result matters to the subscription, not to the client
        self._record: QueueRecord | None = None

    @staticmethod
    def key_of(record: QueueRecord, command: Command) -> bytes | None:
        """Return the key that most likely authorises the command."""
        return record.rcv_keys[0]

    def likely_key(self) -> bytes | None:
        record = self._record
        return None if record is None else self.key_of(record, self.t.command)

    @abstractmethod
    def execute(self, record: QueueRecord) -> None:
        """Execute the command, which was verified against `record`."""

    # Verification.

    def begin(self) -> None:
        t = self.t
        credentials = self._credentials
        record = credentials.cache.get(t.entity_id) if self.uses_cache else None
        if record is None or record.status is not EntityStatus.ACTIVE:
            # A cached inactive status may be outdated, so fetch the record before refusing.
            self._fetch()
            return
        verifier, key = self.origin.verifier, self.key_of(record, t.command)
        behind = bool(self.session.incoming.share.waiting)  # commands of one connection keep their order
        authorised = None if behind else verifier.at_once(t, key)
        if authorised is None or not (authorised or len(record.rcv_keys) == 1):
            if behind or not verifier.is_cheap(t, key):
                self._verified_cached = True
                self._record = record
                self._wait_for_turn()
                return
            authorised = verifier.queue(t, record) is None
        if authorised:
            self.execute(record)
            return
        self._refetch(record)

    def step(self) -> None:
        record = self._record
        verifier = self.origin.verifier
        if self.ahead is None or self.t.service_sig is not None:
            verifier.look_ahead(self, self.session.incoming.share.waiting)
        ahead, self.ahead = self.ahead, None
        if record is None:
            parse_record(b"", 0, _DUMMY_RECORD)
            self._deny(verifier.missing(self.t, ahead))
            return
        error = verifier.queue(self.t, record, ahead)
        if error is None:
            if not self._verified_cached:
                self._credentials.cache.put(self.t.entity_id, record)
            self.execute(record)
            self._release()
        elif self._verified_cached:
            self._verified_cached = False
            self._refetch(record)
        else:
            self._deny(error)

    def _fetch(self) -> None:
        self._hold_back()
        self._credentials.fetch(self.t.entity_id, self._fetched)

    def _fetched(self, record: QueueRecord | Unavailable | None) -> None:
        if record is UNAVAILABLE:
            self._unavailable()
            return
        self._record = record  # type: ignore[assignment]
        self._wait_for_turn()

    def _refetch(self, record: QueueRecord) -> None:
        """The cached credentials did not authorise the command: fetch the present ones, which decide."""
        self._rev = record.rev
        self._hold_back()
        self._credentials.fetch(self.t.entity_id, self._refetched)

    def _refetched(self, record: QueueRecord | Unavailable | None) -> None:
        if record is UNAVAILABLE:
            self._unavailable()
        elif record is None:
            self._deny(Simple.AUTH)
        elif record.rev == self._rev:  # type: ignore[union-attr]
            self._deny(self.origin.verifier.session(self.t) or Simple.AUTH)
        else:
            self._record = record  # type: ignore[assignment]
            self._wait_for_turn()

    def _wait_for_turn(self) -> None:
        self._hold_back()
        self.session.incoming.share.add(self)

    def _deny(self, error: ErrorType) -> None:
        if error is Simple.AUTH and self.auth_stat is not None:
            stats = self.session.shared.stats
            setattr(stats, self.auth_stat, getattr(stats, self.auth_stat) + 1)
        self.fail(error)
        self._release()

    def _unavailable(self) -> None:
        self.fail(Simple.INTERNAL)
        self._release()

    # Holding back the commands behind this one.

    def _hold_back(self) -> None:
        if self._hold is None:
            self._hold = self.session.incoming.hold()

    def _release(self) -> None:
        hold, self._hold = self._hold, None
        if hold is not None:
            hold.release()

    # Results of the store.

    def retry_stale(self) -> None:
        """The queue's credentials have changed since they were fetched: fetch, verify and execute again."""
        self._tries += 1
        self._credentials.cache.drop(self.t.entity_id)
        if self._tries > _TRIES:
            self.fail(Simple.INTERNAL)
            return
        self._verified_cached = False
        self._fetch()

    def queue_is_gone(self) -> None:
        """The queue was deleted since its credentials were fetched."""
        self._credentials.cache.drop(self.t.entity_id)
        self.fail(Simple.AUTH)

    def time_out(self) -> None:
        """The store did not answer in time. The script may still run, and a message it marks in flight must be sent."""
        self._timed_out = True
        self.fail(Simple.INTERNAL)

    def refuse_blocked(self, record: QueueRecord) -> bool:
        """Answer BLOCKED if the operator has blocked the queue. Return whether the command is refused."""
        if record.status.__class__ is EntityStatus:
            return False
        self.fail(Blocked(record.status))  # type: ignore[arg-type]
        return True


class RareQueueHandler(QueueHandler):
    """A command that is rare enough for a fetch and a task. Later commands of the connection wait for it."""

    __slots__ = ()

    uses_cache = False
    refuses_blocked: ClassVar[bool] = True  # answer BLOCKED for a queue that the operator has blocked

    def execute(self, record: QueueRecord) -> None:
        self.session.spawn(self._run(record, self.session.incoming.hold()))

    async def _run(self, record: QueueRecord, hold: Hold) -> None:
        with hold:
            if self.refuses_blocked and self.refuse_blocked(record):
                return
            try:
                await answer_failure(self, self.work(record))
                shared = self.session.shared
                day = shared.today()
                if record.day != day and isinstance(record.status, EntityStatus):  # for a blocked queue, SEND notes it
                    await shared.store.queues.update_day(record, day)
            except Unavailable:
                pass  # only the day of last use is missing

    @abstractmethod
    async def work(self, record: QueueRecord) -> None: ...

    async def succeeded(self, call: Awaitable[Status]) -> bool:
        """Await a call of the store. Return whether it succeeded; if not, the command is answered or retried."""
        try:
            status = await call
        except Unavailable:
            self.fail(Simple.INTERNAL)
            return False
        if status is not Status.OK:
            self.not_ok(status)
        return status is Status.OK

    def not_ok(self, status: Status) -> None:
        if status is Status.STALE:
            self.retry_stale()
        elif status is Status.GONE:
            self.queue_is_gone()
        else:
            self.fail(Simple.AUTH)
