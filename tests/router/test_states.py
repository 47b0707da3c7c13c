"""The answer to every command in every state of a queue: its mode, secured or not, active, suspended or blocked."""

import os
from collections.abc import Callable
from typing import NamedTuple

import pytest

from tests.router.fleet import Fleet, Peer, Queue, err
from weir.crypto.keys import KeyPair, generate
from weir.wire.errors import Blocked, BlockingInfo, BlockingReason, Simple
from weir.wire.smp import commands as cmd
from weir.wire.smp.commands import Command, ContactReq, LinkData, MessagingReq, QueueMode
from weir.wire.smp.replies import ERR, NID, OK
from weir.wire.versions import VersionRange, max_message_length

DATA = LinkData(b"fixed", b"user")
INFO = BlockingInfo(BlockingReason.SPAM)
OTHER = generate("ed25519")
REQUESTS = {QueueMode.MESSAGING: MessagingReq(), QueueMode.CONTACT: ContactReq(), None: None}


class Made(NamedTuple):
    queue: Queue
    link_id: bytes
    ntf_id: bytes
    ntf_key: KeyPair


async def made(r: Peer, old: Peer, mode: QueueMode | None, secured: bool) -> Made:
    queue = await (old if mode is None else r).new("ed25519", subscribe=False, request=REQUESTS[mode])
    link_id, ntf_key = os.urandom(24), generate("ed25519")
    assert await r.do(cmd.LSET(link_id, DATA), queue.rcv_id, queue.rcv_key) == OK()
    nid = await r.do(cmd.NKEY(ntf_key.spki, generate("x25519").public), queue.rcv_id, queue.rcv_key)
    assert isinstance(nid, NID)
    if secured:
        queue.snd_key = generate("ed25519")
        assert await r.do(cmd.KEY(queue.snd_key.spki), queue.rcv_id, queue.rcv_key) == OK()
    return Made(queue, link_id, nid.ntf_id, ntf_key)


Call = tuple[Command, bytes, KeyPair | None]
By = Callable[[Made], Call]


def recipient(command: Command) -> By:
    return lambda made: (command, made.queue.rcv_id, made.queue.rcv_key)


def own_key(made: Made) -> KeyPair:
    return made.queue.snd_key or OTHER


LARGE = cmd.SEND(False, bytes(max_message_length(19) + 1))
COMMANDS: dict[str, By] = {
    "KEY": lambda made: (cmd.KEY(own_key(made).spki), made.queue.rcv_id, made.queue.rcv_key),
    "KEY other": recipient(cmd.KEY(OTHER.spki)),
    "SKEY": lambda made: (cmd.SKEY(own_key(made).spki), made.queue.snd_id, own_key(made)),
    "SKEY other": lambda made: (cmd.SKEY(OTHER.spki), made.queue.snd_id, OTHER),
    "RKEY": recipient(cmd.RKEY((OTHER.spki,))),
    "LSET": lambda made: (cmd.LSET(made.link_id, DATA), made.queue.rcv_id, made.queue.rcv_key),
    "LSET other": recipient(cmd.LSET(os.urandom(24), DATA)),
    "LDEL": recipient(cmd.LDEL()),
    "LKEY": lambda made: (cmd.LKEY(own_key(made).spki), made.link_id, own_key(made)),
    "LKEY other": lambda made: (cmd.LKEY(OTHER.spki), made.link_id, OTHER),
    "LGET": lambda made: (cmd.LGET(), made.link_id, None),
    "NKEY": recipient(cmd.NKEY(OTHER.spki, generate("x25519").public)),
    "NDEL": recipient(cmd.NDEL()),
    "NSUB": lambda made: (cmd.NSUB(), made.ntf_id, made.ntf_key),
    "SUB": recipient(cmd.SUB()),
    "GET": recipient(cmd.GET()),
    "ACK": recipient(cmd.ACK(b"")),
    "QUE": recipient(cmd.QUE()),
    "SEND": lambda made: (cmd.SEND(False, b"1"), made.queue.snd_id, made.queue.snd_key),
    "SEND large": lambda made: (LARGE, made.queue.snd_id, made.queue.snd_key),
    "SEND other": lambda made: (cmd.SEND(False, b"1"), made.queue.snd_id, OTHER),
    "OFF": recipient(cmd.OFF()),
    "DEL": recipient(cmd.DEL()),
}


def expected(name: str, mode: QueueMode | None, secured: bool, status: str) -> str:
    """By the reference: who may, then BLOCKED, then what the mode allows."""
    messaging, contact = mode is QueueMode.MESSAGING, mode is QueueMode.CONTACT
    other = name.endswith(" other")
    command = name.split()[0]
    if command in ("SKEY", "LKEY") and not (messaging and not (secured and other)):
        return "AUTH"
    if command == "LGET" and not (contact or (mode is None and not secured)):
        return "AUTH"
    if name == "SEND other":
        return "AUTH"
    if name == "SEND large":
        return "LARGE_MSG"
    if command in ("OFF", "DEL"):
        return "OK"
    if command == "NSUB":
        return "SOK"
    if status == "blocked":
        return "BLOCKED"
    if command == "SEND":
        return "AUTH" if status == "off" else "OK"
    if (command == "KEY" and secured and other) or (command == "RKEY" and not contact):
        return "AUTH"
    if command == "LSET" and (other or (secured and not contact)):
        return "AUTH"
    named = {"LKEY": "LNK", "LGET": "LNK", "NKEY": "NID", "SUB": "SOK", "ACK": "NO_MSG", "QUE": "INFO"}
    return named.get(command, "OK")


@pytest.mark.parametrize("status", ["active", "off", "blocked"])
@pytest.mark.parametrize("secured", [False, True], ids=["unsecured", "secured"])
@pytest.mark.parametrize("mode", REQUESTS, ids=lambda mode: mode.name.lower() if mode else "before SKEY")
async def test_every_command(fleet: Fleet, mode: QueueMode | None, secured: bool, status: str) -> None:
    r, c = await fleet.client(0), await fleet.client(1)
    old = await fleet.client(0, versions=VersionRange(6, 8))
    answers, wanted = {}, {}
    for name, by in COMMANDS.items():
        queue = await made(r, old, mode, secured)
        if status == "off":
            assert await r.do(cmd.OFF(), queue.queue.rcv_id, queue.queue.rcv_key) == OK()
        elif status == "blocked":
            assert await fleet[0].store.queues.block(queue.queue.snd_id, INFO) is not None
        reply = await c.do(*by(queue))
        answers[name] = type(reply).__name__
        if isinstance(reply, ERR):
            answers[name] = "BLOCKED" if isinstance(reply.error, Blocked) else reply.error.value  # type: ignore[union-attr]
        wanted[name] = expected(name, mode, secured, status)
    assert answers == wanted


async def test_a_blocked_queue_that_is_suspended(fleet: Fleet) -> None:
    """OFF takes the place of the block, as at the reference: its senders hear AUTH."""
    r, s = await fleet.client(0), await fleet.client(1)
    queue = await r.new()
    assert await fleet[1].store.queues.block(queue.snd_id, INFO) is not None
    assert await s.send(queue, b"1") == err(Blocked(INFO))
    assert await r.do(cmd.OFF(), queue.rcv_id, queue.rcv_key) == OK()
    assert await s.send(queue, b"1") == err(Simple.AUTH)
