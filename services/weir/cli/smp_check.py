"""`weir smp check`: tests a running router as a client would, on every edge and across edges."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from weir.cli.arguments import parser, read_secret, smp_address
from weir.cli.check_targets import Target, add_target_options, expect, find_targets, show
from weir.cli.errors import Fail
from weir.cli.programs import Program
from weir.cli.signals import sigterm_as_ctrl_c
from weir.client.errors import ClientError
from weir.client.smp import SmpClient
from weir.client.uninterrupted import uninterrupted
from weir.crypto.certificates import make_self_signed
from weir.crypto.keys import KeyPair, dh, generate
from weir.transport.client import ConnectError
from weir.transport.smp import ServiceCredentials
from weir.wire.address import SmpAddress
from weir.wire.smp.commands import ACK, DEL, NEW, SEND, SKEY, MessagingReq, ServiceRole
from weir.wire.smp.ids_hash import of_id
from weir.wire.smp.message import RcvMsgBody, decrypt_message
from weir.wire.smp.replies import ALLS, IDS, MSG, OK
from weir.wire.versions import SND_AUTH_KEY


class _Queue(NamedTuple):
    rcv_id: bytes
    snd_id: bytes
    key: KeyPair
    secret: bytes


def main(_program: Program, argv: Sequence[str]) -> int:
    p = parser(
        "weir smp check",
        "Uses a router as clients do: creates a queue on one edge, sends a message through the next edge, receives\n"
        "and acknowledges the message, and deletes the queue. With --service, does the same as a receive service\n"
        "(SUBS, SOKS, ALLS). Prints one line per step. The exit code is 0 if all steps passed. The first failed step\n"
        "ends the check with exit code 1. The check deletes its queues, also when a step fails and when it is\n"
        "interrupted. The protocol has no command that removes a service: the check's service stays without queues\n"
        "until the router forgets it.",
        """
weir smp check --address smp://FINGERPRINT@smp.example.org
weir smp check --address smp://FINGERPRINT@router --resolve router-edges --edges 2 --service
weir smp check --address smp://FINGERPRINT@router --connect 10.0.0.1:5223 --connect 10.0.0.2:5223
""",
    )
    p.add_argument("--address", required=True, metavar="SMP", help="smp://FINGERPRINT[:password]@host[:port]")
    add_target_options(p)
    p.add_argument("--service", action="store_true", help="also test a receive service")
    p.add_argument("--auth-file", type=Path, metavar="FILE", help="file with the password for new queues")
    options = p.parse_args(argv)
    address = smp_address(options.address)
    if options.auth_file is not None:
        address = replace(address, basic_auth=read_secret(options.auth_file).encode())
    targets = find_targets(address, options)
    try:
        with sigterm_as_ctrl_c():
            return asyncio.run(_Check(address, targets, options.timeout).run(options.service))
    except ConnectError as error:
        raise Fail(f"cannot connect: {error}") from None
    except ClientError as error:
        raise Fail(f"no answer: {type(error).__name__}") from None
    except TimeoutError:
        raise Fail("no message arrived within the time limit") from None


class _Check:
    def __init__(self, address: SmpAddress, targets: list[Target], timeout: float) -> None:
        self._address = address
        self._targets = targets
        self._timeout = timeout
        self._queues: list[_Queue] = []  # created and not deleted

    async def run(self, service: bool) -> int:
        try:
            await self._check(service)
        finally:
            await self._delete_left()
        return 0

    async def _check(self, service: bool) -> None:
        for target in self._targets:
            async with await self._connect(target) as client:
                took = await client.ping()
                print(f"ok  {target}: version {client.session.version}, PING {took * 1000:.1f} ms")
        for number, target in enumerate(self._targets):
            await self._check_message(target, self._targets[(number + 1) % len(self._targets)], None)
        if service:
            credentials = ServiceCredentials.self_signed(ServiceRole.MESSAGING, make_self_signed("weir check"))
            await self._check_message(self._targets[0], self._targets[-1], credentials)
            await self._check_fold(credentials)

    async def _connect(self, target: Target, service: ServiceCredentials | None = None) -> SmpClient:
        address = replace(self._address, hosts=(target.host,), port=target.port)
        return await SmpClient.connect(address, timeout=self._timeout, reply_timeout=self._timeout, service=service)

    async def _check_message(self, receive: Target, send: Target, service: ServiceCredentials | None) -> None:
        async with await self._connect(receive, service) as recipient, await self._connect(send) as sender:
            queue = await uninterrupted(self._create(recipient))
            body = await self._send(sender, queue)
            await self._receive(recipient, queue, body)
            await self._delete(recipient, queue)
        kind = "service queue" if service else "queue"
        print(f"ok  {kind}: created at {receive}, sent through {send}, received, acknowledged, deleted")

    async def _check_fold(self, service: ServiceCredentials) -> None:
        """Check that SUBS returns the exact count and hash, and brings the message that waits."""
        target = self._targets[0]
        async with await self._connect(target, service) as recipient:
            queue = await uninterrupted(self._create(recipient))
        async with await self._connect(self._targets[-1]) as sender:
            body = await self._send(sender, queue)
        async with await self._connect(target, service) as recipient:
            sub = await recipient.subscribe_service(ServiceRole.MESSAGING, 1, of_id(queue.rcv_id))
            if (sub.count, sub.ids_hash) != (1, of_id(queue.rcv_id)):
                raise Fail(f"SUBS: expected 1 queue and its hash; the router has {sub.count} queues or another hash")
            await self._receive(recipient, queue, body)
            async with asyncio.timeout(self._timeout):
                while (await recipient.events.get()).reply != ALLS():
                    pass
            await self._delete(recipient, queue)
        print(f"ok  service: SUBS at {target}, exact SOKS, the waiting message, ALLS")

    async def _create(self, client: SmpClient) -> _Queue:
        key, dh_key = generate("x25519"), generate("x25519")
        request = MessagingReq() if client.session.version >= SND_AUTH_KEY else None
        reply = await client.send(NEW(key.spki, dh_key.public, self._address.basic_auth, True, request), b"", key)
        if not isinstance(reply, IDS):
            raise Fail(f"NEW: {show(reply)}")
        queue = _Queue(reply.rcv_id, reply.snd_id, key, dh(reply.dh_key, dh_key.private))
        self._queues.append(queue)
        return queue

    async def _delete(self, client: SmpClient, queue: _Queue) -> None:
        expect(await client.send(DEL(), queue.rcv_id, queue.key), OK(), "DEL")
        self._queues.remove(queue)

    async def _delete_left(self) -> None:
        """Delete the queue of a step that has failed. The failure of the step is the one to report."""
        if not self._queues:
            return
        with contextlib.suppress(ClientError, ConnectError, Fail):
            async with await self._connect(self._targets[0]) as client:
                for queue in list(self._queues):
                    await self._delete(client, queue)

    async def _send(self, client: SmpClient, queue: _Queue) -> bytes:
        key, body = generate("x25519"), secrets.token_bytes(64)
        expect(await client.send(SKEY(key.spki), queue.snd_id, key), OK(), "SKEY")
        expect(await client.send(SEND(False, body), queue.snd_id, key), OK(), "SEND")
        return body

    async def _receive(self, client: SmpClient, queue: _Queue, body: bytes) -> None:
        async with asyncio.timeout(self._timeout):
            while True:
                event = await client.events.get()
                if event.entity_id == queue.rcv_id and isinstance(event.reply, MSG):
                    break
        message = decrypt_message(queue.secret, event.reply.msg_id, event.reply.body)
        if not isinstance(message, RcvMsgBody) or message.body != body:
            raise Fail("MSG: the message differs from the message that was sent")
        expect(await client.send(ACK(event.reply.msg_id), queue.rcv_id, queue.key), OK(), "ACK")
