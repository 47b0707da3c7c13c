"""`weir ntf check`: tests a running notification router as a device does, and says when each step arrived."""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, NamedTuple

from weir.cli.arguments import ntf_address, parser, read_secret, smp_address
from weir.cli.check_targets import Target, add_target_options, expect, find_targets, show
from weir.cli.errors import Fail
from weir.cli.programs import Program
from weir.client.errors import ClientError
from weir.client.ntf import NtfClient
from weir.client.smp import SmpClient
from weir.crypto.keys import KeyPair, dh, generate
from weir.transport.client import ConnectError
from weir.wire.address import SmpAddress
from weir.wire.ntf.push import decode_messages
from weir.wire.ntf.types import (
    IDSUB,
    IDTKN,
    OK,
    SCHK,
    SDEL,
    SNEW,
    SUB,
    TCHK,
    TDEL,
    TKN,
    TNEW,
    TVFY,
    DeviceToken,
    PushProvider,
    SmpQueueNtf,
    SubStatus,
    TokenStatus,
)
from weir.wire.smp import commands as smp
from weir.wire.smp import replies
from weir.wire.smp.message import decrypt_nmsg_meta

if TYPE_CHECKING:
    from weir.cli.ntf_check_push import Receiver

_POLL = 0.1  # seconds


class _Token(NamedTuple):
    id: bytes
    key: KeyPair
    secret: bytes


def main(_program: Program, argv: Sequence[str]) -> int:
    p = parser(
        "weir ntf check",
        "Uses a notification router as a device does: registers a token, verifies it, and deletes it. With --smp,\n"
        "also creates a queue on that SMP router, subscribes to its notifications, waits until the notification\n"
        "router is subscribed, and sends a message. With --web-push, the device gets real pushes through an ntfy\n"
        "server and decrypts them; without, its token is a null token, to which nothing is pushed.\n"
        "Prints one line per step, with the time that the step took. The exit code is 0 if all steps passed. The\n"
        "first failed step ends the check with exit code 1. The check deletes what it has made, also when a step\n"
        "fails.",
        """
weir ntf check --address ntf://FINGERPRINT@ntf.example.org
weir ntf check --address ntf://FINGERPRINT@ntf.example.org --smp smp://FINGERPRINT@smp.example.org
weir ntf check --address ntf://FINGERPRINT@ntf.example.org --smp smp://… --web-push https://ntfy.sh
weir ntf check --address ntf://FINGERPRINT@router --resolve router-edges --edges 2
""",
    )
    p.add_argument("--address", required=True, metavar="NTF", help="ntf://FINGERPRINT@host[:port], with or without ?…")
    p.add_argument("--smp", metavar="SMP", help="smp://FINGERPRINT[:password]@host[:port] of an SMP router")
    p.add_argument("--smp-auth-file", type=Path, metavar="FILE", help="file with the password for new queues")
    p.add_argument("--web-push", metavar="URL", help="https://host[:port] of an ntfy server that the router can reach")
    p.add_argument("--web-push-ca", type=Path, metavar="FILE", help="CA certificates of the ntfy server (the system's)")
    add_target_options(p)
    options = p.parse_args(argv)
    address = ntf_address(options.address)
    queues = None if options.smp is None else smp_address(options.smp)
    if queues is not None and options.smp_auth_file is not None:
        queues = replace(queues, basic_auth=read_secret(options.smp_auth_file).encode())
    receiver: Receiver | None = None
    if options.web_push is not None:
        from weir.cli.ntf_check_push import Receiver, push_server

        receiver = Receiver(push_server(options.web_push, options.web_push_ca), options.timeout)
    check = _Check(address, find_targets(address, options), queues, receiver, options.timeout)
    try:
        return asyncio.run(check.run())
    except ConnectError as error:
        raise Fail(f"cannot connect: {error}") from None
    except ClientError as error:
        raise Fail(f"no answer: {type(error).__name__}") from None


class _Check:
    def __init__(
        self,
        address: SmpAddress,
        targets: list[Target],
        queues: SmpAddress | None,
        receiver: Receiver | None,
        timeout: float,
    ) -> None:
        self._address = address
        self._targets = targets
        self._queues = queues
        self._receiver = receiver
        self._timeout = timeout
        self._undo: list[Callable[[], Awaitable[object]]] = []  # deletes what was made, the last first
        self._began = perf_counter()

    async def run(self) -> int:
        async with contextlib.AsyncExitStack() as clients:
            try:
                await self._check(clients)
            finally:
                await self._clean_up()
        self._step("cleaned up: everything that the check has made is deleted")
        return 0

    async def _check(self, clients: contextlib.AsyncExitStack) -> None:
        edges: list[NtfClient] = []
        for target in self._targets:
            edges.append(await clients.enter_async_context(await self._connect(target)))
            self._step(f"{target}: connected, version {edges[-1].session.version}")
            await edges[-1].ping()
            self._step(f"{target}: PING")
        token = await self._register(edges[0])
        await self._activate(edges[-1], token)
        if self._queues is not None:
            await self._notify(clients, edges, token, self._queues)

    async def _connect(self, target: Target) -> NtfClient:
        address = replace(self._address, hosts=(target.host,), port=target.port)
        return await NtfClient.connect(address, timeout=self._timeout, reply_timeout=self._timeout)

    # The token.

    async def _register(self, client: NtfClient) -> _Token:
        key, dh_key = generate("x25519"), generate("x25519")
        if client.session.version == 1:
            key = generate("ed25519")
        device = DeviceToken(PushProvider.APNS_NULL, os.urandom(16).hex().encode())
        if self._receiver is not None:
            device = self._receiver.token.device_token
        reply = await client.send(TNEW(device, key.spki, dh_key.public), b"", key)
        if not isinstance(reply, IDTKN):
            raise Fail(f"TNEW: {show(reply)}")
        token = _Token(reply.token_id, key, dh(reply.dh_key, dh_key.private))
        self._undo.append(lambda: client.send(TDEL(), token.id, key))
        self._step(f"TNEW: {'Web Push' if self._receiver else 'null'} token registered")
        return token

    async def _activate(self, client: NtfClient, token: _Token) -> None:
        code = b"any"
        if self._receiver is not None:
            code = await self._received(token, "verification", "the push with the code")
            self._step("the push with the code has arrived")
        expect(await client.send(TVFY(code), token.id, token.key), OK(), "TVFY")
        expect(await client.send(TCHK(), token.id, token.key), TKN(TokenStatus.ACTIVE), "TCHK")
        self._step("TVFY: the token is ACTIVE")

    async def _received(self, token: _Token, name: str, what: str) -> bytes:
        assert self._receiver is not None
        try:
            return await self._receiver.receive(token.secret, name)
        except TimeoutError:
            raise Fail(f"{what} did not arrive within {self._timeout:g} s") from None

    # A queue and its notifications.

    async def _notify(
        self, clients: contextlib.AsyncExitStack, edges: list[NtfClient], token: _Token, queues: SmpAddress
    ) -> None:
        limit = self._timeout
        recipient = await clients.enter_async_context(
            await SmpClient.connect(queues, timeout=limit, reply_timeout=limit)
        )
        self._step("SMP router: connected")
        ids, key = await self._create(recipient, queues)
        ntf_key, ntf_dh = generate("ed25519"), generate("x25519")
        notifier = await recipient.send(smp.NKEY(ntf_key.spki, ntf_dh.public), ids.rcv_id, key)
        if not isinstance(notifier, replies.NID):
            raise Fail(f"NKEY: {show(notifier)}")
        self._step("SMP router: queue with a notifier created")
        queue = SmpQueueNtf(replace(queues, basic_auth=None).server_host, notifier.ntf_id)
        reply = await edges[0].send(SNEW(token.id, queue, ntf_key.pkcs8), b"", token.key)
        if not isinstance(reply, IDSUB):
            raise Fail(f"SNEW: {show(reply)}")
        self._undo.append(lambda: edges[0].send(SDEL(), reply.sub_id, token.key))
        self._step("SNEW: subscription created")
        await self._wait_until_active(edges[-1], reply.sub_id, token)
        self._step("SCHK: the notification router is subscribed to the queue")
        await self._send(recipient, ids)
        self._step("SEND: a message with the notification flag")
        if self._receiver is None:
            return
        secret = dh(notifier.dh_key, ntf_dh.private)
        await self._receive_message(token, notifier.ntf_id, secret)
        self._step("the push with the notification has arrived and decrypts")

    async def _create(self, client: SmpClient, queues: SmpAddress) -> tuple[replies.IDS, KeyPair]:
        key, dh_key = generate("x25519"), generate("x25519")
        command = smp.NEW(key.spki, dh_key.public, queues.basic_auth, False, smp.MessagingReq())
        ids = await client.send(command, b"", key)
        if not isinstance(ids, replies.IDS):
            raise Fail(f"NEW: {show(ids)}")
        self._undo.append(lambda: client.send(smp.DEL(), ids.rcv_id, key))
        return ids, key

    async def _wait_until_active(self, client: NtfClient, sub_id: bytes, token: _Token) -> None:
        status: object = None
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._timeout):
                while (status := await client.send(SCHK(), sub_id, token.key)) != SUB(SubStatus.ACTIVE):
                    if status not in (SUB(SubStatus.NEW), SUB(SubStatus.PENDING), SUB(SubStatus.INACTIVE)):
                        break
                    await asyncio.sleep(_POLL)
        if status != SUB(SubStatus.ACTIVE):
            shown = getattr(getattr(status, "status", None), "value", show(status))
            raise Fail(f"the notification router is not subscribed to the queue: {shown} after {self._timeout:g} s")

    async def _send(self, client: SmpClient, ids: replies.IDS) -> None:
        key = generate("x25519")
        expect(await client.send(smp.SKEY(key.spki), ids.snd_id, key), replies.OK(), "SKEY")
        message = smp.SEND(True, secrets.token_bytes(64))
        expect(await client.send(message, ids.snd_id, key), replies.OK(), "SEND")

    async def _receive_message(self, token: _Token, ntf_id: bytes, secret: bytes) -> None:
        text = await self._received(token, "message", "the push with the notification")
        messages = [one for one in decode_messages(text) or [] if one.queue.notifier_id == ntf_id]
        if not messages or decrypt_nmsg_meta(secret, messages[-1].nonce, messages[-1].meta) is None:
            raise Fail("the push does not have the queue's notification")

    # Lines and cleaning up.

    def _step(self, text: str) -> None:
        now = perf_counter()
        print(f"ok  {(now - self._began) * 1000:7.1f} ms  {text}", flush=True)
        self._began = now

    async def _clean_up(self) -> None:
        """Delete what was made. The failure of a step is the one to report."""
        while self._undo:
            with contextlib.suppress(ClientError):
                await self._undo.pop()()
