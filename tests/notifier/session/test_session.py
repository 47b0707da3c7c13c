"""A client's conversation: blocks of all versions, the order of answers, failures and bad input."""

import asyncio
import os

import pytest

from tests.notifier.router import LIMIT, Device, Router, err
from weir.client.errors import ClientError
from weir.client.ntf import NtfRequest
from weir.crypto.boxes import pad
from weir.crypto.keys import KeyType, generate
from weir.notifier.store.records import Token
from weir.redis.errors import UNAVAILABLE
from weir.runtime.turns import Turns
from weir.wire.errors import CommandError, Simple
from weir.wire.ntf.codec import encode_command
from weir.wire.ntf.transmission import NtfServerTransmission, decode_replies, encode_client, for_auth, pack
from weir.wire.ntf.types import OK, PING, PONG, SCHK, TCHK, TCRN, TDEL, TKN, NtfCommand, TokenStatus
from weir.wire.versions import NTF_BLOCK_SIZE, VersionRange


@pytest.mark.parametrize(
    ("version", "key_type"), [(1, "ed25519"), (1, "ed448"), (2, "x25519"), (3, "x25519"), (3, "ed25519"), (3, "ed448")]
)
async def test_every_version_and_kind_of_key(router: Router, version: int, key_type: KeyType) -> None:
    device = await router.device(versions=VersionRange(version, version))
    token = await device.activate(key_type=key_type)
    sub_id = await token.subscription() if key_type != "ed448" else b""  # too large for a block
    assert await token.do(TCHK()) == TKN(TokenStatus.ACTIVE)
    if sub_id:
        assert await token.do(SCHK(), sub_id)
    assert await device.client.ping() > 0


async def test_a_client_without_alpn_speaks_version_1(router: Router) -> None:
    device = await router.device(alpn=False)
    assert device.client.session.version == 1
    token = await device.activate(key_type="ed25519")
    assert await token.do(TCHK()) == TKN(TokenStatus.ACTIVE)


class Raw:
    """The router's blocks as they come."""

    def __init__(self, device: Device) -> None:
        self.client = device.client
        self.blocks: asyncio.Queue[list[NtfServerTransmission]] = asyncio.Queue()
        self.closed = asyncio.Event()
        self.client.connection.attach(self)

    def on_block(self, content: bytes) -> None:
        self.blocks.put_nowait(decode_replies(self.client.session, content))

    def on_writable(self) -> None: ...

    def on_closed(self) -> None:
        self.closed.set()

    def send(self, *requests: NtfRequest) -> None:
        self.client.connection.send_contents(pack(self.client.session, [self.encode(*one) for one in requests]))

    def encode(self, command: NtfCommand, entity_id: bytes, key: object = None) -> bytes:
        session, corr_id = self.client.session, os.urandom(24)
        authorized, sent = for_auth(session, corr_id, entity_id, encode_command(session.version, command))
        auth = b"" if key is None else self.client._authorize(key, corr_id, authorized)  # type: ignore[arg-type]
        return encode_client(session, sent, auth, None)

    async def replies(self, count: int) -> list[object]:
        found: list[object] = []
        async with asyncio.timeout(LIMIT):
            while len(found) < count:
                found += [one.reply for one in await self.blocks.get()]
        return found


async def test_behaviour_11_errors_of_a_block_come_ahead_of_its_commands(router: Router) -> None:
    owner = await router.device()
    token = await owner.activate()
    device = await router.device()
    raw = Raw(device)
    raw.send(
        NtfRequest(TCHK(), token.id, token.key),
        NtfRequest(PING(), token.id),  # PING has no entity
        NtfRequest(TCHK(), token.id, generate("x25519")),
    )
    assert await raw.replies(3) == [err(CommandError.HAS_AUTH), err(Simple.AUTH), TKN(TokenStatus.ACTIVE)]


async def test_commands_of_a_block_see_what_those_before_have_changed(router: Router) -> None:
    owner = await router.device()
    token = await owner.activate()
    raw = Raw(await router.device())
    raw.send(NtfRequest(TDEL(), token.id, token.key), NtfRequest(TCHK(), token.id, token.key))
    assert await raw.replies(2) == [OK(), err(Simple.AUTH)]


async def test_blocks_are_answered_in_their_order(router: Router) -> None:
    token = await (await router.device()).activate()
    raw = Raw(await router.device())
    for minutes in (20, 30, 40):
        raw.send(NtfRequest(TCRN(minutes), token.id, token.key))
    raw.send(NtfRequest(PING()))
    assert await raw.replies(4) == [OK(), OK(), OK(), PONG()]
    stored = await router.shared.store.tokens.fetch(token.id)
    assert stored is not None and stored.cron == 40


async def test_a_full_block_of_pings(router: Router) -> None:
    device = await router.device()
    assert await device.client.send_many([NtfRequest(PING())] * 300) == [PONG()] * 300


@pytest.mark.parametrize(
    ("content", "answer"),
    [
        (b"", Simple.BLOCK),
        (b"\0", Simple.BLOCK),
        (b"\1\0\7\0\0\0PONG", CommandError.UNKNOWN),
        (b"\1\0\7\0\0\0TCHK", CommandError.NO_AUTH),
        (b"\1\0\x08\0\0\0PING ", CommandError.SYNTAX),
        (b"\1\0\x0b\0\0\0TNEW Txx", CommandError.SYNTAX),
        (b"\xff" * 400, Simple.BLOCK),
    ],
)
async def test_bad_blocks_get_the_protocols_error(
    router: Router, content: bytes, answer: Simple | CommandError
) -> None:
    raw = Raw(await router.device())
    raw.client.connection.send_contents([content])
    assert await raw.replies(1) == [err(answer)]
    raw.send(NtfRequest(PING()))
    assert await raw.replies(1) == [PONG()]


async def test_a_block_without_its_padding(router: Router) -> None:
    raw = Raw(await router.device())
    raw.client.connection.send_raw(b"\xff\xff" + pad(b"", NTF_BLOCK_SIZE)[2:])
    assert await raw.replies(1) == [err(Simple.BLOCK)]


async def test_a_store_that_fails_is_answered_internal(router: Router, monkeypatch: pytest.MonkeyPatch) -> None:
    device = await router.device()
    token = await device.activate()

    async def unavailable(*_: object) -> None:
        raise UNAVAILABLE

    async def broken(*_: object) -> None:
        raise KeyError("an id")

    tokens = router.shared.store.tokens
    for failure in (unavailable, broken):
        with monkeypatch.context() as patch:
            patch.setattr(tokens, "set_cron", failure)
            assert await token.do(TCRN(30)) == err(Simple.INTERNAL)
        with monkeypatch.context() as patch:
            patch.setattr(tokens, "fetch", failure)
            assert await token.do(TCHK()) == err(Simple.INTERNAL)
    assert await token.do(TCRN(30)) == OK()


async def test_a_verification_that_fails_refuses_the_command(router: Router, monkeypatch: pytest.MonkeyPatch) -> None:
    device = await router.device()
    token = await device.activate()
    [session] = router.shared.clients.values()

    def broken(*_: object) -> bool:
        raise ValueError

    with monkeypatch.context() as patch:
        patch.setattr(type(session.verifier), "authorised", broken)
        with pytest.raises(ClientError):
            await token.do(TDEL())
    found = await router.shared.store.tokens.fetch(token.id)
    assert isinstance(found, Token)


async def test_a_client_that_disconnects_while_its_command_waits_for_its_turn(
    router: Router, monkeypatch: pytest.MonkeyPatch
) -> None:
    owner = await router.device()
    token = await owner.activate()
    raw = Raw(await router.device())
    session = list(router.shared.clients.values())[-1]
    async with asyncio.timeout(LIMIT):
        with monkeypatch.context() as patch:
            patch.setattr(Turns, "enqueue", lambda _turns, _share: None)
            raw.send(NtfRequest(TCHK(), token.id, token.key))
            while not session.incoming.share.waiting:
                await asyncio.sleep(0.01)
        session.conn.abort()
        while router.shared._tasks:
            await asyncio.sleep(0.01)
    assert await token.do(TCHK()) == TKN(TokenStatus.ACTIVE)


async def test_draining_answers_what_has_come(router: Router) -> None:
    token = await (await router.device()).activate()
    raw = Raw(await router.device())
    session = list(router.shared.clients.values())[-1]
    raw.send(NtfRequest(TCHK(), token.id, token.key))
    async with asyncio.timeout(LIMIT):
        while session.incoming.idle:
            await asyncio.sleep(0)
        while not raw.closed.is_set():
            session.drain()
            await asyncio.sleep(0.01)
    assert await raw.replies(1) == [TKN(TokenStatus.ACTIVE)]


async def test_behaviour_24_a_client_is_never_kept_for_a_subscription(router: Router) -> None:
    """Devices wait for pushes, not for anything on their connection."""
    token = await (await router.device()).activate()
    await token.subscription()
    assert not any(session.is_subscribed for session in router.shared.clients.values())
