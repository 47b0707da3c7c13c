"""An SMP client on one connection. Events are MSG, END, …"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from weir.client.base import DEFAULT_TIMEOUT, Client
from weir.client.errors import NoServiceSession, UnexpectedReply
from weir.crypto.authenticator import sign
from weir.crypto.keys import KeyPair
from weir.transport.smp import SmpClientConnection, connect
from weir.wire.address import SmpAddress
from weir.wire.errors import ErrorType, Simple
from weir.wire.smp.codec import encode_command
from weir.wire.smp.commands import NEW, NSUB, NSUBS, PING, SUB, SUBS, Command, ServiceRole
from weir.wire.smp.replies import ERR, PONG, SOKS, Reply
from weir.wire.smp.transmission import ServerTransmission, decode_replies, fits, pack_forward

_SERVICE_COMMANDS = frozenset((NEW, SUB, NSUB))

Answer = Reply | ErrorType
OnReply = Callable[[Answer], None]


@dataclass(frozen=True, slots=True)
class ServiceSub:
    """A service's subscription: the number of its queues and the idsHash of their ids."""

    service_id: bytes
    count: int
    ids_hash: bytes


class Request(NamedTuple):
    """A command, the id of its queue or service, and the key that authorises it."""

    command: Command
    entity_id: bytes = b""
    key: KeyPair | None = None


class SmpClient(Client[SmpClientConnection, Command, Answer, ServerTransmission]):
    """An SMP client on one connection.

    Events go to the queue `events`, unless `on_event` is set. `on_close` is called when the connection has ended.
    """

    def __init__(
        self, connection: SmpClientConnection, *, timeout: float = DEFAULT_TIMEOUT, keep_secrets: bool = True
    ) -> None:
        self.session = connection.session
        super().__init__(connection, timeout=timeout, keep_secrets=keep_secrets)

    @classmethod
    async def connect(
        cls,
        address: SmpAddress | str,
        *,
        reply_timeout: float = DEFAULT_TIMEOUT,
        keep_secrets: bool = True,
        **options: Any,
    ) -> "SmpClient":
        """Connect to a router. The options are those of `weir.transport.smp.connect`."""
        return cls(await connect(address, **options), timeout=reply_timeout, keep_secrets=keep_secrets)

    async def __aenter__(self) -> "SmpClient":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    @property
    def service_id(self) -> bytes | None:
        return None if self.connection.service is None else self.connection.service.service_id

    async def subscribe_service(
        self, role: ServiceRole, count: int, ids_hash: bytes, *, timeout: float | None = None
    ) -> ServiceSub:
        """Send SUBS or NSUBS with the count and hash that the service expects. Returns those of the router."""
        service = self.connection.service
        if service is None or service.role is not role:
            raise NoServiceSession
        command = SUBS(count, ids_hash) if role is ServiceRole.MESSAGING else NSUBS(count, ids_hash)
        reply = await self.send(command, service.service_id, service.key_pair, timeout=timeout)
        if isinstance(reply, SOKS):
            return ServiceSub(service.service_id, reply.count, reply.ids_hash)
        if reply == ERR(Simple.SERVICE):
            raise NoServiceSession
        raise UnexpectedReply(reply)

    async def ping(self) -> float:
        """Send PING and return the round-trip time in seconds."""
        return await self._ping(PING(), PONG())

    # For the base

    def _encode_command(self, command: Command) -> bytes:
        return encode_command(self.session.version, command)

    def _sign(self, command: Command, key: KeyPair, corr_id: bytes, authorized: bytes) -> tuple[bytes, bytes | None]:
        service, service_sig = self.connection.service, None
        if service is not None and type(command) in _SERVICE_COMMANDS:
            service_sig = sign("ed25519", service.key, authorized)
            # The queue's key also signs the service's certificate (protocol, "double authentication").
            authorized = service.cert_hash + authorized
        return self._authorize(key, corr_id, authorized), service_sig

    def _decode_block(self, content: bytes) -> list[ServerTransmission]:
        return decode_replies(self.session, content)

    def _pack(self, transmissions: list[bytes]) -> list[bytes]:
        return pack_forward(transmissions)

    def _fits(self, transmission: bytes) -> bool:
        return fits(transmission)
