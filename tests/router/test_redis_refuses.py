"""Redis answers errors: every command is answered, later commands too, and everything works once Redis does."""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.router.commands.test_rfwd import forward, transmission
from tests.router.fleet import Fleet, Peer, Queue, err, router_config, sok
from tests.router.service import credentials, subs, until_alls
from tests.router.store.default_keys import keys
from tests.router.test_states import COMMANDS, Made, made
from tests.support.redis import client_of, discard, start_server, until
from weir.client.smp import Request
from weir.crypto.keys import generate
from weir.redis.embedded import Embedded
from weir.redis.errors import Unavailable
from weir.router.config import RouterConfig
from weir.transport.client import ConnectError
from weir.wire.errors import Simple
from weir.wire.smp import commands as cmd
from weir.wire.smp import ids_hash
from weir.wire.smp.commands import MessagingReq, QueueMode
from weir.wire.smp.replies import OK, SOKS

INTERNAL = err(Simple.INTERNAL)
Fault = Callable[[Any, Path], Iterator[None]]


@pytest.fixture
async def own(config: RouterConfig, tmp_path: Path) -> AsyncIterator[tuple[Fleet, Embedded]]:
    """An edge on a Redis that the test may spoil. Its lease outlives every fault."""
    server = start_server()
    base = router_config(server.url, config.transport.identity, tmp_path)
    fleet = Fleet(replace(base, redis=replace(base.redis, lease=100.0)))
    await fleet.add()
    yield fleet, server
    await fleet.close()
    discard(server)


def _full(client: Any, _directory: Path) -> Iterator[None]:
    client.config_set("maxmemory", "1")
    yield
    client.config_set("maxmemory", "0")


def _no_rights(client: Any, _directory: Path) -> Iterator[None]:
    client.execute_command("ACL", "SETUSER", "default", "-@all", "+acl")
    yield
    client.execute_command("ACL", "SETUSER", "default", "+@all")


def _no_replicas(client: Any, _directory: Path) -> Iterator[None]:
    client.config_set("min-replicas-to-write", "1")
    yield
    client.config_set("min-replicas-to-write", "0")


def _no_disk(client: Any, directory: Path) -> Iterator[None]:
    """A snapshot fails, so Redis refuses all writes, and PING as well."""
    (directory / "dump.rdb").mkdir()  # Redis cannot put its snapshot there
    client.config_set("save", "3600 1")
    client.bgsave()
    until(lambda: client.info("persistence")["rdb_last_bgsave_status"] == "err")
    yield
    client.config_set("save", "")


STORE = {"NEW", "KEY", "KEY other", "SKEY", "SKEY other", "LSET", "LKEY", "LKEY other", "SEND", "SUBS"}
WRITE = STORE | {"LDEL", "NKEY", "NDEL", "NSUB", "SUB", "OFF", "DEL"}
READ = {"LSET other", "RKEY", "LGET", "RFWD", "GET", "ACK", "QUE", "SEND large", "SEND other"}
# The commands that are answered with INTERNAL. A full Redis refuses only what needs memory; SUBS needs none.
FAULTS: dict[str, tuple[Fault, set[str]]] = {
    "OOM": (_full, STORE - {"SUBS"}),
    "NOPERM": (_no_rights, WRITE | READ),
    "NOREPLICAS": (_no_replicas, WRITE),
    "MISCONF": (_no_disk, WRITE),
}


async def all_commands(peer: Peer, service: Peer, proxy: Peer, queues: dict[str, Made]) -> dict[str, object]:
    """The answer to each command on its own queue. Each is followed by a PING, which needs no Redis."""
    key = generate("x25519")
    new = cmd.NEW(key.spki, generate("x25519").public, queue_req=MessagingReq())
    answers: dict[str, object] = {
        "NEW": await peer.do(new, b"", key),
        "SUBS": await subs(service, 0, ids_hash.EMPTY),
        "RFWD": await forward(proxy, transmission(b"LGET", os.urandom(24))),
    }
    for name, by in COMMANDS.items():
        command, entity_id, key_or_none = by(queues[name])
        answers[name] = await peer.do(command, entity_id, key_or_none)
        for other in (peer, service, proxy):
            await other.smp.ping()
    return answers


@pytest.mark.parametrize("kind", FAULTS)
async def test_every_command_is_answered(
    own: tuple[Fleet, Embedded], kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    fleet, server = own
    spoil, refused = FAULTS[kind]
    r, proxy = await fleet.client(), await fleet.client(proxy=True)
    service, other = [await fleet.client(service=credentials()) for _ in range(2)]
    now, later = [{name: await made(r, r, QueueMode.MESSAGING, False) for name in COMMANDS} for _ in range(2)]
    jobs = set(fleet[0].background._tasks)
    with client_of(server) as client, contextlib.contextmanager(spoil)(client, server.directory):
        answers = await all_commands(r, service, proxy, now)
        assert {name for name, answer in answers.items() if answer == INTERNAL} == refused
        with pytest.raises(ConnectError, match="BAD_SERVICE"):
            await fleet.client(service=credentials())
        await fleet[0].router.delivery.reassert()
        with contextlib.suppress(Unavailable):
            await fleet[0].save()
    answers = await all_commands(r, other, proxy, later)
    assert INTERNAL not in answers.values()
    await fleet.client(service=credentials())
    assert fleet[0].background._tasks == jobs, "no background job has ended"
    assert fleet[0].store.topology.failures.counts[kind] >= len(refused)
    lines = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    assert len([line for line in lines if f"({kind}," in line]) == len(lines) == 1, lines


async def test_a_script_that_fails(own: tuple[Fleet, Embedded]) -> None:
    """The key of a queue's record holds something else: the commands of this queue fail, all others work."""
    fleet, _ = own
    r, store = await fleet.client(), fleet[0].store
    queues = [await r.new(secure=True) for _ in range(3)]
    for queue in queues:
        p = store.partition(queue.rcv_id)
        await store.core.ask(p, b"DEL", key := keys.queue(p, queue.rcv_id))
        if queue is not queues[1]:
            await store.core.ask(p, b"SET", key, b"not a record")
        else:
            await store.core.ask(p, b"HSET", key, b"r", b"1")  # a record without most of its fields
    for queue in queues:
        for command in (cmd.SUB(), cmd.OFF(), cmd.GET(), cmd.QUE(), cmd.DEL()):
            assert await r.do(command, queue.rcv_id, queue.rcv_key) == INTERNAL
        await r.smp.ping()
    good = await r.new(secure=True)
    assert await r.send(good, b"1") == OK()
    assert await r.text(good) == b"1"


async def neighbours(peer: Peer, fleet: Fleet, count: int) -> list[Queue]:
    """Queues of one partition: scripts that serve many queues get them together."""
    by_partition: dict[int, list[Queue]] = {}
    while True:
        queue = await peer.new(secure=True)
        found = by_partition.setdefault(fleet[0].store.partition(queue.rcv_id), [])
        found.append(queue)
        if len(found) == count:
            return found


async def damage(fleet: Fleet, queue: Queue) -> None:
    """The list of the queue's messages holds something else."""
    store = fleet[0].store
    p = store.partition(queue.rcv_id)
    await store.core.ask(p, b"SET", keys.messages(p, queue.rcv_id), b"not a list")


async def test_a_damaged_queue_beside_others_in_a_block_of_subs(own: tuple[Fleet, Embedded]) -> None:
    fleet, _ = own
    s, r = await fleet.client(), await fleet.client()
    first, bad, last = queues = await neighbours(s, fleet, 3)
    assert await s.send(last, b"waits") == OK()
    await damage(fleet, bad)
    answers = await r.smp.send_many([Request(cmd.SUB(), queue.rcv_id, queue.rcv_key) for queue in queues])
    assert answers == [sok(r), INTERNAL, sok(r)]
    assert await r.text(last) == b"waits"
    assert await s.send(first, b"1") == OK()
    assert await r.text(first) == b"1"


async def test_a_damaged_queue_of_a_service(own: tuple[Fleet, Embedded]) -> None:
    """All its other messages come, and ALLS."""
    fleet, _ = own
    certificate = credentials()
    s, service = await fleet.client(), await fleet.client(service=certificate)
    queues = await neighbours(service, fleet, 3)
    for queue in queues:
        assert await s.send(queue, b"1") == OK()
    await service.close()
    bad, *good = queues
    await damage(fleet, bad)
    service = await fleet.client(service=certificate)
    assert isinstance(await subs(service, 0, ids_hash.EMPTY), SOKS)
    assert len(await until_alls(service, good)) == len(good)


@pytest.mark.parametrize(
    ("concern", "method"), [("queues", "suspend"), ("queues", "new"), ("notifications", "set_notifier")]
)
async def test_a_mistake_in_a_command(
    own: tuple[Fleet, Embedded], concern: str, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A command that fails unexpectedly is answered, once, and the commands behind it in its block as well."""
    fleet, _ = own
    r = await fleet.client()
    queue, key = await r.new(), generate("x25519")

    async def mistaken(*_: object) -> None:
        raise KeyError

    monkeypatch.setattr(getattr(fleet[0].store, concern), method, mistaken)
    commands = {
        "suspend": Request(cmd.OFF(), queue.rcv_id, queue.rcv_key),
        "new": Request(cmd.NEW(key.spki, generate("x25519").public, queue_req=MessagingReq()), b"", key),
        "set_notifier": Request(cmd.NKEY(key.spki, generate("x25519").public), queue.rcv_id, queue.rcv_key),
    }
    answers = await r.smp.send_many([commands[method], Request(cmd.SUB(), queue.rcv_id, queue.rcv_key)])
    assert answers == [INTERNAL, sok(r)]
    await r.smp.ping()
