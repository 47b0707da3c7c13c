import asyncio
import os
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from weir.client.errors import CommandNotSent, ConnectionClosed, ReplyTimeout
from weir.client.ntf import NtfClient, NtfRequest
from weir.crypto.authenticator import AUTHENTICATOR_SIZE, verify, verify_signature
from weir.crypto.keys import KeyPair, KeyType, dh, generate
from weir.transport.ntf import NTF, NtfConnection
from weir.transport.server import Listener, TransportConfig, bind, serve
from weir.wire.address import ServerHost, SmpAddress
from weir.wire.errors import Simple
from weir.wire.ntf.codec import encode_reply
from weir.wire.ntf.transmission import NtfTransmission, decode_block, encode_server, pack
from weir.wire.ntf.types import ERR, OK, PING, PONG, SNEW, TCHK, TCRN, NtfReply, SmpQueueNtf
from weir.wire.versions import VersionRange


@dataclass
class Router:
    """Answers PING with PONG, and other commands with OK if the token's key has authorised them."""

    keys: dict[bytes, KeyPair] = field(default_factory=dict)
    received: list[NtfTransmission] = field(default_factory=list)
    blocks: int = 0
    silent: bool = False
    listener: Listener[NtfConnection] = field(init=False)

    @property
    def address(self) -> SmpAddress:
        return SmpAddress(self.listener.identity.fingerprint, ("127.0.0.1",), self.listener.ports[0], scheme="ntf")

    def session(self, connection: NtfConnection) -> "_Session":
        return _Session(self, connection)


class _Session:
    def __init__(self, router: Router, connection: NtfConnection) -> None:
        self.router = router
        self.connection = connection

    def on_blocks(self, blocks: list[bytes]) -> None:
        session = self.connection.session
        for block in blocks:
            self.router.blocks += 1
            answers = []
            for one in decode_block(session, self.connection.open(block)):
                assert isinstance(one, NtfTransmission), one
                self.router.received.append(one)
                ping = isinstance(one.command, PING)
                reply: NtfReply = PONG() if ping else OK() if self._authorised(one) else ERR(Simple.AUTH)
                entity_id = b"" if ping else one.entity_id
                answers.append(encode_server(session, one.corr_id, entity_id, encode_reply(session.version, reply)))
            if not self.router.silent:
                self.connection.send_contents(pack(session, answers))

    def _authorised(self, one: NtfTransmission) -> bool:
        key = self.router.keys.get(one.entity_id)
        if key is None:
            return False
        if len(one.auth) == AUTHENTICATOR_SIZE:
            return verify(dh(key.public, self.connection.session_key), one.corr_id, one.auth, one.authorized)
        return verify_signature(key.type, key.public, one.auth, one.authorized)

    def on_writable(self) -> None: ...

    def on_closed(self) -> None: ...


@pytest.fixture
async def router(identity: Path) -> AsyncIterator[Router]:
    router = Router()

    async def no_questions(_question: object) -> None:
        raise AssertionError

    router.listener = await serve(
        NTF, TransportConfig(), NTF.identity(identity), router.session, no_questions, socks=[bind("127.0.0.1", 0)]
    )
    yield router
    await router.listener.close()


@pytest.mark.parametrize("version", [1, 2, 3])
async def test_commands_are_answered_at_every_version(router: Router, version: int) -> None:
    versions = VersionRange(1, version)
    async with await NtfClient.connect(router.address, versions=versions) as client:
        assert client.session.version == version
        assert await client.ping() > 0
        assert await client.send(TCHK(), bytes(24), generate("ed25519")) == ERR(Simple.AUTH)


async def test_without_alpn_the_version_is_1(router: Router) -> None:
    async with await NtfClient.connect(router.address, alpn=False) as client:
        assert client.session.version == 1
        assert await client.ping() > 0


@pytest.mark.parametrize(
    ("version", "key_type"), [(1, "ed25519"), (1, "ed448"), (2, "x25519"), (3, "x25519"), (3, "ed25519"), (3, "ed448")]
)
async def test_every_kind_of_key_authorises(router: Router, version: int, key_type: KeyType) -> None:
    key, token_id = generate(key_type), os.urandom(24)
    router.keys[token_id] = key
    async with await NtfClient.connect(router.address, versions=VersionRange(version, version)) as client:
        assert await client.send(TCRN(30), token_id, key) == OK()
        assert await client.send(TCRN(30), token_id, generate(key_type)) == ERR(Simple.AUTH)


async def test_without_the_routers_key_there_are_no_authenticators(router: Router) -> None:
    async with await NtfClient.connect(router.address, alpn=False) as client:
        with pytest.raises(CommandNotSent):
            await client.send(TCHK(), bytes(24), generate("x25519"))


@pytest.mark.parametrize(("version", "blocks"), [(1, 20), (3, 2)])
async def test_commands_of_one_turn_share_blocks_from_version_2(router: Router, version: int, blocks: int) -> None:
    async with await NtfClient.connect(router.address, versions=VersionRange(version, version)) as client:
        assert await client.send_many([NtfRequest(PING())] * 20) == [PONG()] * 20
        assert router.blocks == blocks


async def test_too_large_command(router: Router) -> None:
    queue = SmpQueueNtf(ServerHost((b"h" * 200, b"i" * 50), b"5223", bytes(32)), bytes(24))
    key = generate("ed448")
    async with await NtfClient.connect(router.address) as client:
        with pytest.raises(CommandNotSent, match="LARGE_MSG"):
            await client.send(SNEW(bytes(24), queue, generate("x25519").pkcs8), b"", key)
        assert await client.ping() > 0


async def test_no_answer_and_end_of_the_connection(router: Router) -> None:
    router.silent = True
    client = await NtfClient.connect(router.address)
    with pytest.raises(ReplyTimeout):
        await client.send(PING(), timeout=0.05)
    waiting = asyncio.ensure_future(client.send(PING()))
    await asyncio.sleep(0)
    client.connection.abort()
    with pytest.raises(ConnectionClosed):
        await waiting
    await client.close()
