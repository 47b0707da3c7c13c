"""A sender behind a proxy, and relays that misbehave."""

import os
from typing import NamedTuple

from tests.router.fleet import Peer
from weir.crypto.authenticator import authenticate, sign
from weir.crypto.certificates import certificate_key
from weir.crypto.keys import KeyPair, dh, generate
from weir.crypto.session_key import verify_session_key
from weir.router.config import RouterConfig
from weir.transport.server import TransportConfig, serve
from weir.transport.smp import SMP, SmpConnection
from weir.wire.address import ServerHost, SmpAddress
from weir.wire.errors import Proxy as ProxyError
from weir.wire.errors import ProxyBroker
from weir.wire.smp import commands as cmd
from weir.wire.smp.codec import encode_command
from weir.wire.smp.commands import Command
from weir.wire.smp.forward import open_response, seal_transmission
from weir.wire.smp.replies import ERR, PKEY, PRES
from weir.wire.smp.session import Session
from weir.wire.smp.transmission import decode_replies, encode_client, for_auth, pack


def broker(error: object) -> ERR:
    return ERR(ProxyError(ProxyBroker(error)))  # type: ignore[arg-type]


def server_host(address: str) -> ServerHost:
    parsed = SmpAddress.parse(address)
    assert parsed is not None
    return parsed.server_host


class Proxied(NamedTuple):
    """A sender behind a proxy."""

    peer: Peer
    relay: PKEY
    relay_key: bytes  # X25519, raw public

    @staticmethod
    async def connect(peer: Peer, address: str, auth: bytes | None = None) -> "Proxied":
        reply = await peer.do(cmd.PRXY(server_host(address), auth))
        assert isinstance(reply, PKEY), reply
        signer = certificate_key(reply.cert_key.chain[0])
        assert signer is not None
        key = verify_session_key(signer, reply.cert_key.signed_key)
        assert key is not None and key[0] == "x25519"
        return Proxied(peer, reply, key[1])

    async def do(
        self,
        command: Command | list[tuple[Command, bytes, KeyPair | None]],
        entity_id: bytes = b"",
        key: KeyPair | None = None,
        *,
        version: int | None = None,
    ) -> object:
        session = Session(self.relay.session_id, version or self.relay.versions.max)
        commands = command if isinstance(command, list) else [(command, entity_id, key)]
        encoded = []
        corr_id = os.urandom(24)
        for one, entity, signing in commands:
            authorized, sent = for_auth(session, corr_id, entity, encode_command(session.version, one))
            auth = b""
            if signing is not None and signing.type == "x25519":
                auth = authenticate(dh(self.relay_key, signing.private), corr_id, authorized)
            elif signing is not None:
                auth = sign(signing.type, signing.private, authorized)
            encoded.append(encode_client(session, sent, auth, None))
        own = generate("x25519")
        secret = dh(self.relay_key, own.private)
        box = seal_transmission(secret, corr_id, pack(encoded)[0])
        reply = await self.peer.do(
            cmd.PFWD(session.version, own.public, box), self.relay.session_id, corr_id=corr_id, timeout=20
        )
        if not isinstance(reply, PRES):
            return reply
        content = open_response(secret, corr_id, reply.response)
        assert content is not None
        (inner,) = decode_replies(session, content)
        assert inner.corr_id == corr_id
        return inner.reply


class SilentRelay:
    """Shakes hands and then says nothing, or something else."""

    def __init__(self, answer: bytes | None) -> None:
        self.answer = answer
        self.blocks = 0

    async def listen(self, config: RouterConfig) -> str:
        identity = SMP.identity(config.transport.identity)
        self.listener = await serve(SMP, TransportConfig(), identity, self.on_session, host="127.0.0.1")
        return str(SmpAddress(identity.fingerprint, ("127.0.0.1",), self.listener.ports[0]))

    def on_session(self, connection: SmpConnection) -> "SilentRelay":
        self.connection = connection
        return self

    def on_blocks(self, blocks: list[bytes]) -> None:
        for block in blocks:
            self.on_block(self.connection.open(block))

    def on_block(self, content: bytes) -> None:
        self.blocks += 1
        self.last = content
        if self.answer is not None:
            command_at = content.index(b"RFWD")
            corr_id = content[command_at - 25 : command_at - 1]
            t = b"\0" + bytes((len(corr_id),)) + corr_id + b"\0" + self.answer
            self.connection.send_contents([b"\1" + len(t).to_bytes(2, "big") + t])

    def on_writable(self) -> None: ...

    def on_closed(self) -> None: ...
