"""A router that answers from a script: enough of SMP to see what a client does with each answer."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path

from weir.crypto.authenticator import verify, verify_signature
from weir.crypto.keys import KeyPair, dh
from weir.transport.server import Listener, TransportConfig, bind, serve
from weir.transport.smp import SMP, ServiceOffer, SmpConnection
from weir.wire.address import SmpAddress
from weir.wire.errors import HandshakeError, Simple
from weir.wire.smp.codec import encode_reply
from weir.wire.smp.commands import NEW, NSUB, NSUBS, PING, SUB, SUBS, Command
from weir.wire.smp.replies import ERR, OK, PONG, SOK, SOKS, Reply
from weir.wire.smp.transmission import (
    ClientTransmission,
    TransmissionError,
    decode_block,
    encode_server,
    pack_forward,
)

SERVICE_ID = b"first-service-id-24-byte"
Answers = Callable[["Session", ClientTransmission], Reply | None]


@dataclass
class Script:
    """`answer` decides; None means no answer at all."""

    listener: Listener[SmpConnection] = field(init=False)
    sessions: list["Session"] = field(default_factory=list)
    service_id: bytes | HandshakeError = SERVICE_ID
    keys: dict[bytes, KeyPair] = field(default_factory=dict)
    count: int = 0
    ids_hash: bytes = bytes(16)
    answer: Answers | None = None
    arrived: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def address(self) -> SmpAddress:
        return SmpAddress(self.listener.identity.fingerprint, ("127.0.0.1",), self.listener.ports[0])

    def commands(self, kind: type[Command] | None = None) -> list[Command]:
        """All that arrived, over every session."""
        return [
            one.command
            for session in self.sessions
            for one in session.received
            if kind is None or isinstance(one.command, kind)
        ]


class Session:
    def __init__(self, script: Script, connection: SmpConnection) -> None:
        self.script = script
        self.connection = connection
        self.received: list[ClientTransmission] = []
        self.blocks = 0
        script.sessions.append(self)
        script.arrived.set()

    def on_blocks(self, blocks: list[bytes]) -> None:
        for block in blocks:
            self.on_block(self.connection.open(block))

    def on_block(self, content: bytes) -> None:
        self.blocks += 1
        for one in decode_block(self.connection.session, content):
            if isinstance(one, TransmissionError):
                self.say(ERR(one.error), one.entity_id, one.corr_id)
                continue
            self.received.append(one)
            reply = (self.script.answer or self.default)(self, one)
            if reply is not None:
                self.say(reply, b"" if isinstance(reply, PONG) else one.entity_id, one.corr_id)

    @staticmethod
    def default(session: "Session", one: ClientTransmission) -> Reply:
        command = one.command
        if isinstance(command, PING):
            return PONG()
        key = session.script.keys.get(one.entity_id)
        if isinstance(command, SUBS | NSUBS):
            service = session.connection.service
            if service is None or one.entity_id != service.service_id:
                return ERR(Simple.SERVICE)
            if not verify_signature("ed25519", service.key, one.auth, one.authorized):
                return ERR(Simple.AUTH)
            return SOKS(session.script.count, session.script.ids_hash)
        if key is None or not session.verified(one, key):
            return ERR(Simple.AUTH)
        if isinstance(command, SUB | NSUB):
            service = session.connection.service
            return SOK(service.service_id if service is not None and one.service_sig else None)
        return OK()

    def verified(self, one: ClientTransmission, key: KeyPair) -> bool:
        authorized, service = one.authorized, self.connection.service
        if service is not None and isinstance(one.command, NEW | SUB | NSUB):
            assert one.service_sig is not None
            if not verify_signature("ed25519", service.key, one.service_sig, authorized):
                return False
            authorized = service.cert_hash + authorized
        else:
            assert one.service_sig is None
        if key.type == "x25519":
            return verify(dh(key.public, self.connection.session_key), one.corr_id, one.auth, authorized)
        return verify_signature(key.type, key.public, one.auth, authorized)

    def say(self, reply: Reply, entity_id: bytes = b"", corr_id: bytes = b"") -> None:
        session = self.connection.session
        encoded = encode_server(session, corr_id, entity_id, encode_reply(session.version, reply))
        self.connection.send_contents(pack_forward([encoded]))

    def on_writable(self) -> None:
        pass

    def on_closed(self) -> None:
        pass


async def start_script(identity: Path, port: int = 0) -> Script:
    script = Script()

    async def service_id(_offer: ServiceOffer) -> bytes | HandshakeError:
        return script.service_id

    script.listener = await serve(
        SMP,
        TransportConfig(),
        SMP.identity(identity),
        lambda connection: Session(script, connection),
        service_id,
        socks=[bind("127.0.0.1", port)],
    )
    return script


StartScript = Callable[..., Awaitable[Script]]
