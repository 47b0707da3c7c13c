"""How a command is handled: its record found, the command verified with the token's key, executed.

    find ──► step, when it is the connection's turn ──► execute
               │ no record, not the token's key, or a status that does not allow the command
               ▼
             AUTH

A missing record is verified with a dummy key, so the time of an AUTH error does not reveal which tokens and
subscriptions exist. A handler class registers for its command with `@handles`.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from weir.notifier.store.records import Status, Subscription, Token
from weir.runtime.verification import Ahead, KeyVerifier
from weir.wire.errors import ErrorType, Simple
from weir.wire.ntf.transmission import NtfTransmission
from weir.wire.ntf.types import DECLARATIONS, OK, NtfCommand, NtfReply

if TYPE_CHECKING:
    from weir.notifier.notifier import Shared
    from weir.notifier.session.session import Session

K = TypeVar("K", bound=NtfCommand)
R = TypeVar("R")
H = TypeVar("H", bound="type[Handler[Any, Any]]")

HANDLERS: dict[type[NtfCommand], type[Handler[Any, Any]]] = {}


def handles(kind: type[NtfCommand]) -> Callable[[H], H]:
    """Register a class as the handler of a declared command."""

    def register(handler: H) -> H:
        if kind not in DECLARATIONS or kind in HANDLERS:
            raise TypeError(f"{kind.__name__} is not declared, or has a handler already")
        HANDLERS[kind] = handler
        return handler

    return register


class Handler(ABC, Generic[K, R]):
    """One command `K` and its record `R`."""

    __slots__ = ("error", "record", "session", "t")

    def __init__(self, session: Session, t: NtfTransmission) -> None:
        self.session = session
        self.t = t
        self.record: R | None = None
        self.error: ErrorType | None = None

    @property
    def command(self) -> K:
        return cast(K, self.t.command)

    @property
    def name(self) -> str:
        return type(self.t.command).__name__

    @property
    def shared(self) -> Shared:
        return self.session.shared

    @abstractmethod
    async def find(self) -> R | None:
        """Fetch the record. None: there is none."""

    @abstractmethod
    async def execute(self, record: R) -> NtfReply | ErrorType: ...

    def refused(self) -> ErrorType | None:
        """Return the error if the command may not be executed (any more)."""
        return None


class VerifiedHandler(Handler[K, R]):
    """A command that its record's key authorises."""

    __slots__ = ("_turn", "ahead")

    def __init__(self, session: Session, t: NtfTransmission) -> None:
        super().__init__(session, t)
        self.ahead: Ahead | None = None
        self._turn: asyncio.Future[None] | None = None

    @abstractmethod
    def key_of(self, record: R) -> bytes:
        """Return the key that authorises the command."""

    def allows(self, record: R) -> bool:
        """Whether the token's status allows the command."""
        return True

    def refused(self) -> ErrorType | None:
        """Return AUTH if the record is gone, or its status does not allow the command (any more)."""
        return Simple.AUTH if self.record is None or not self.allows(self.record) else None

    def wait_for_turn(self) -> None:
        self.error = Simple.INTERNAL  # in case that the turn fails
        self._turn = asyncio.get_running_loop().create_future()
        self.session.incoming.share.add(self)

    async def verified(self) -> None:
        """Wait until the command had its turn. `error` says whether it was refused."""
        if self._turn is not None:
            await self._turn

    def drop(self) -> None:
        """The client has disconnected, so the turn never comes."""
        if self._turn is not None:
            self._turn.cancel()

    def likely_key(self) -> bytes | None:
        return None if self.record is None else self.key_of(self.record)

    def step(self) -> None:
        try:
            verifier = self.session.verifier
            verifier.look_ahead(self, self.session.incoming.share.waiting)
            self.error = self._verify(verifier)
        finally:
            if self._turn is not None and not self._turn.done():
                self._turn.set_result(None)

    def _verify(self, verifier: KeyVerifier[NtfTransmission]) -> ErrorType | None:
        ahead, self.ahead = self.ahead, None
        if self.record is None:
            verifier.dummy(self.t, ahead)
            return Simple.AUTH
        if not verifier.authorised(self.t, self.t.authorized, self.key_of(self.record), ahead):
            return Simple.AUTH
        return self.refused()


class TokenHandler(VerifiedHandler[K, Token]):
    """A command on a token."""

    __slots__ = ()

    async def find(self) -> Token | None:
        return await self.shared.fetch_token(self.t.entity_id)

    def key_of(self, record: Token) -> bytes:
        return record.verify_key


class SubscriptionHandler(VerifiedHandler[K, tuple[Subscription, Token]]):
    """A command on a subscription, authorised by the key of its token."""

    __slots__ = ()

    async def find(self) -> tuple[Subscription, Token] | None:
        return await self.shared.fetch_subscription(self.t.entity_id)

    def key_of(self, record: tuple[Subscription, Token]) -> bytes:
        return record[1].verify_key

    def allows(self, record: tuple[Subscription, Token]) -> bool:
        return record[1].may_subscribe


def done(status: Status) -> NtfReply | ErrorType:
    """The answer to a command that changes a record which may have changed or gone meanwhile."""
    return OK() if status is Status.OK else Simple.AUTH
