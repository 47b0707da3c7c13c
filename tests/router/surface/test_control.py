"""The control port, word by word, on real edges with real clients."""

import asyncio
import base64
import errno
import logging
import time
from collections.abc import AsyncIterator
from dataclasses import replace
from unittest.mock import AsyncMock, Mock

import pytest

from tests.router.fleet import Fleet, Peer, Queue, err, sok
from tests.router.notifier import nkey, nmsg
from weir.cli.main import main
from weir.redis.errors import UNAVAILABLE
from weir.router.config import Auth, RouterConfig
from weir.router.surface.control import HELP, start_control
from weir.router.surface.control_numbers import stats
from weir.surface.control.port import ControlPort
from weir.surface.fleet import FleetNumbers
from weir.telemetry.settings import Telemetry
from weir.wire.errors import Blocked, BlockingInfo, BlockingReason, Simple
from weir.wire.smp import commands as cmd
from weir.wire.smp.replies import DELD, ERR, OK

ADMIN, USER = "boss", "helper"
BLOCKED = BlockingInfo(BlockingReason.SPAM)

# The lines that the reference prints.
_STATS = """
fromTime · qCreated · qSecured · qDeletedAll · qDeletedAllB · qDeletedNew · qDeletedSecured · daily active queues
qSub · qSubAllB · qSubEnd · qSubEndB · other SUB events (auth, duplicate, prohibited)
msgSent · msgRecv · msgRecvGet · msgGet · msgGetNoMsg · other GET events (auth, duplicate, prohibited)
msgSentNtf · msgRecvNtf · msgNtfs · msgNtfsB · msgNtfExpired
qCount · qCount 2 · notifiers · msgCount · ntfCount · ntfCount 2
pRelays · pRelaysOwn · pMsgFwds · pMsgFwdsOwn · pMsgFwdsRecv
rcvServiceCount · ntfServiceCount · rcvServiceQueuesCount · ntfServiceQueuesCount
"""
STATS = [name for line in _STATS.strip().splitlines() for name in line.split(" · ")]


@pytest.fixture
def config(config: RouterConfig) -> RouterConfig:
    auth = Auth(control_port_admin_password=ADMIN, control_port_user_password=USER, daily_block_queue_quota=0)
    return replace(config, auth=auth)


@pytest.fixture
async def control(fleet: Fleet) -> AsyncIterator[ControlPort]:
    server = await start_control(fleet[0])
    yield server
    await server.close()


class Session:
    """One session: say a line, hear the answer."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    @classmethod
    async def open(cls, server: ControlPort, password: str | None = None) -> "Session":
        session = cls(*await asyncio.open_connection("127.0.0.1", server.port))
        assert await session.lines(2) == ["SMP server control port", "'help' for supported commands"]
        if password is not None:
            await session.say(f"auth {password}")
        return session

    async def lines(self, count: int) -> list[str]:
        return [(await self._reader.readline()).decode().rstrip("\n") for _ in range(count)]

    async def say(self, line: str, count: int = 1) -> str:
        self._writer.write(line.encode() + b"\n")
        return "\n".join(await self.lines(count))

    async def all(self, line: str) -> list[str]:
        """Everything it answers, until the session ends."""
        self._writer.write(line.encode() + b"\nquit\n")
        return (await self._reader.read()).decode().splitlines()


def text(entity_id: bytes) -> str:
    return base64.urlsafe_b64encode(entity_id).decode()


async def queue_with_message(recipient: Peer, sender: Peer) -> Queue:
    queue = await recipient.new()
    assert await sender.send(queue, b"hello") == OK()
    await recipient.msg(queue)
    return queue


async def test_nothing_without_auth(control: ControlPort) -> None:
    session = await Session.open(control)
    for word in ("stats", "sockets", "server-info", "clients", "save", "suspend", "resume"):
        assert await session.say(word) == "AUTH"
    for line in ("status AAAA", "delete AAAA", "unblock AAAA", "block AAAA reason=spam", "trace 1 on"):
        assert await session.say(line) == "AUTH"


async def test_a_role_is_set_once(control: ControlPort) -> None:
    session = await Session.open(control)
    assert await session.say("auth wrong") == "Current role is CPRNone"
    assert await session.say(f"auth {USER}") == "Current role is CPRUser"
    assert await session.say(f"auth {ADMIN}") == "Current role is CPRUser, start new session to change."
    assert await session.say(f"auth {USER}") == "Current role is CPRUser"
    assert await session.say("clients") == "AUTH"
    admin = await Session.open(control)
    assert await admin.say(f"auth {ADMIN}") == "Current role is CPRAdmin"
    assert await admin.say(f"auth {USER}") == "Current role is CPRAdmin, start new session to change."


async def test_wrong_passwords_of_an_address_are_slowed_down(
    control: ControlPort, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A second connection does not help, and `weir smp ctl` says why."""
    monkeypatch.setattr("weir.surface.control.backoff.FIRST_PAUSE", 60.0)
    first = await Session.open(control)
    first._writer.write(b"auth wrong\n")
    async with asyncio.timeout(10):
        while (said := await (await Session.open(control)).say(f"auth {ADMIN}")) == "Current role is CPRAdmin":
            pass
    assert said.startswith("error: too many wrong passwords, wait ")
    monkeypatch.setenv("WEIR_CONTROL_PASSWORD", ADMIN)
    assert await asyncio.to_thread(main, ["smp", "ctl", "--port", str(control.port), "stats"]) == 1
    refused, auth = capsys.readouterr().out.splitlines()
    assert refused.startswith("error: too many wrong passwords, wait ") and auth == "AUTH"


async def test_help_unknown_words_and_wrong_counts(control: ControlPort) -> None:
    session = await Session.open(control, ADMIN)
    assert await session.say("help", HELP.count("\n") + 1) == HELP
    assert await session.say("fly") == "error: unknown command, try help"
    assert await session.say("status") == "error: status takes 1 words, try help"
    assert await session.say("block AAAA") == "error: block takes 2 words, try help"
    assert await session.say("help me") == "error: help takes 0 words, try help"
    assert (
        await session.say("\nsave", 2) == "saving server state...\nserver state saved!"
    )  # empty lines are passed over


async def test_stats_are_the_fleets(fleet: Fleet, control: ControlPort) -> None:
    recipient, sender = await fleet.client(0), await fleet.client(1)
    await queue_with_message(recipient, sender)
    for edge in fleet.edges:
        await edge.save()
    session = await Session.open(control, USER)
    lines = await session.all("stats")
    names = [line.partition(":")[0] for line in lines]
    assert names == [name for name in STATS if name != "ntfCount 2"]
    admin = await (await Session.open(control, ADMIN)).all("stats")
    assert [line.partition(":")[0] for line in admin] == STATS
    numbers = dict(line.split(": ", 1) for line in lines)
    assert int(numbers["qCreated"]) >= 1 and int(numbers["msgSent"]) >= 1
    assert numbers["pRelays"].startswith("requests=")
    assert numbers["other SUB events (auth, duplicate, prohibited)"].startswith("(")


async def test_notifications_that_wait_are_counted(fleet: Fleet, control: ControlPort) -> None:
    recipient, sender, ntf = await fleet.client(0), await fleet.client(1), await fleet.client(1)
    queue = await recipient.new()
    notifier = await nkey(recipient, queue)

    async def waiting() -> int:
        for edge in fleet.edges:
            await edge.save()
        lines = await (await Session.open(control, USER)).all("stats")
        return int(dict(line.split(": ", 1) for line in lines)["ntfCount"])

    before = await waiting()
    assert await sender.send(queue, b"hello", notification=True) == OK()
    assert await waiting() == before + 1
    assert await ntf.do(cmd.NSUB(), notifier.ntf_id, notifier.key) == sok(ntf)
    await nmsg(ntf, notifier)
    async with asyncio.timeout(5):
        while await waiting() != before:  # done with the call after the one that brought it
            await asyncio.sleep(0.05)


def test_stats_before_anything_was_counted() -> None:
    numbers = FleetNumbers({}, {}, {}, {}, taken_at=1_800_000_000.5)
    assert next(stats(numbers, admin=False)) == "fromTime: 2027-01-15 08:00:00 UTC"


async def test_clients_sockets_and_server_info(fleet: Fleet, control: ControlPort) -> None:
    client = await fleet.client(0)
    queue = await client.new()
    session = await Session.open(control, ADMIN)
    head, *rows = await session.all("clients")
    assert head.startswith("clientId,sessionId,connected,createdAt,rcvActiveAt,sndActiveAt,age,subscriptions,")
    (row,) = rows
    cells = dict(zip(head.split(","), row.split(","), strict=True))
    assert (cells["connected"], cells["subscriptions"], cells["version"], cells["service"]) == ("True", "1", "19", "no")
    assert cells["sessionId"] == ""  # nothing that links it to what was seen elsewhere
    assert abs(time.time() - int(cells["createdAt"])) < 60 and int(cells["age"]) < 60
    assert int(cells["createdAt"]) <= int(cells["rcvActiveAt"])
    assert text(queue.rcv_id) not in row
    assert cells["clientId"].startswith(f"{fleet[0].edge_id}:")
    user = await Session.open(control, USER)
    lines = await user.all("sockets")
    assert lines[0].startswith("Sockets for port ")
    assert lines[-1] == "leaked: 0"
    user = await Session.open(control, USER)
    other = await fleet.client(1)
    await other.new()
    user_lines = await user.all("server-info")
    assert user_lines[0] == "Threads: 2"
    assert user_lines[1:8] == [
        "Clients: 2",
        "SMP subscriptions: 2",
        "SMP subscribed clients: 2",
        "SMP subscribed clients count 2: 2",
        "Ntf subscriptions: 0",
        "Ntf subscribed clients: 0",
        "Ntf subscribed clients count 2: 0",
    ]
    for edge in fleet.edges:
        assert f"Clients of edge {edge.edge_id}: 1" in user_lines
        assert f"SMP subscriptions of edge {edge.edge_id}: 1" in user_lines
    admin_lines = await (await Session.open(control, ADMIN)).all("server-info")
    assert admin_lines[2:7] == [
        "SMP subscriptions (via clients): 2",
        "SMP subscribed clients (via clients): 2",
        "Ntf subscriptions (via clients): 0",
        "Ntf subscribed clients (via clients): 0",
        "SMP subscriptions: 2",
    ]
    assert "Handshakes: 0" in admin_lines
    assert set(user_lines) < set(admin_lines)


async def test_block_and_unblock(fleet: Fleet, control: ControlPort) -> None:
    recipient, sender = await fleet.client(1), await fleet.client(0)
    queue = await queue_with_message(recipient, sender)
    name = text(queue.snd_id)
    session = await Session.open(control, USER)
    day = int(time.time()) // 86400 * 86400
    updated = f"updatedAt: Just (RoundedSystemTime {{roundedSeconds = {day}}}), queueMode: Just QMMessaging"
    spam = "BlockingInfo {reason = BRSpam, notice = Nothing}"
    content = "BlockingInfo {reason = BRContent, notice = Just (ClientNotice {ttl = Just 3600})}"
    assert await session.say(f"status {name}") == f"status: EntityActive, {updated}"
    assert await session.say(f"unblock {name}") == "ok, queue was active"
    assert await session.say(f"block {name} reason=spam") == f"ok, queue blocked: EntityBlocked ({spam})"
    event = await recipient.event()
    assert (event.entity_id, event.reply) == (queue.rcv_id, ERR(Blocked(BLOCKED)))
    assert await sender.send(queue, b"more") == err(Blocked(BLOCKED))
    assert await session.say(f"status {name}") == f"status: EntityBlocked ({spam}), {updated}"
    again = await session.say(f'block {name} reason=content,notice={{ "ttl": 3600 }}')
    assert again == f"ok, already inactive: EntityBlocked ({content})"
    noticed = BlockingInfo(BlockingReason.CONTENT, b'{"ttl":3600}')  # as the reference writes it
    assert await sender.send(queue, b"more") == err(Blocked(noticed))
    assert await session.say(f"status {name}") == f"status: EntityBlocked ({content}), {updated}"
    assert await session.say(f"unblock {name}") == f"ok, queue unblocked, reason to block was: {content}"
    assert await sender.send(queue, b"more") == OK()


@pytest.mark.parametrize("line", ["block {} spam", "block {} reason=boredom", "block {} reason=spam,notice={{"])
async def test_a_block_needs_a_reason(fleet: Fleet, control: ControlPort, line: str) -> None:
    queue = await (await fleet.client(0)).new()
    session = await Session.open(control, USER)
    assert (await session.say(line.format(text(queue.snd_id)))).startswith("error: expected reason=spam")


async def test_what_is_no_queue(control: ControlPort) -> None:
    session = await Session.open(control, ADMIN)
    for word in ("status {}", "block {} reason=spam", "unblock {}", "delete {}"):
        assert await session.say(word.format("A" * 32)) == "error: AUTH"
        for no_id in ("A", "AA!AA"):
            assert await session.say(word.format(no_id)) == "error: not an id: expected base64url"


async def test_the_days_quota_of_blocked_queues(fleet: Fleet, config: RouterConfig) -> None:
    client = await fleet.client(0)
    queues = [await client.new() for _ in range(2)]
    stats = await fleet[0].store.stats.read_stats()
    today = max((count for name, count in stats.items() if name.startswith("qBlocked_")), default=0)
    fleet[0].config = replace(config, auth=replace(config.auth, daily_block_queue_quota=today + 1))
    server = await start_control(fleet[0])
    session = await Session.open(server, USER)
    assert await session.say(f"block {'A' * 32} reason=spam") == "error: AUTH"  # no queue: does not count
    assert (await session.say(f"block {text(queues[0].snd_id)} reason=spam")).startswith("ok, queue blocked")
    refused = await session.say(f"block {text(queues[1].snd_id)} reason=spam")
    assert refused == f"error: reached limit of {today + 1} queues blocked daily"
    fleet[0].config = replace(config, auth=replace(config.auth, daily_block_queue_quota=-1))
    assert await session.say(f"block {text(queues[1].snd_id)} reason=spam") == (
        "error: reached limit of -1 queues blocked daily"
    )
    await server.close()


async def test_delete_tells_the_owner_wherever_it_is(fleet: Fleet, control: ControlPort) -> None:
    recipient, sender = await fleet.client(1), await fleet.client(0)
    queue = await queue_with_message(recipient, sender)
    session = await Session.open(control, ADMIN)
    before = await fleet[0].store.stats.read_stats()
    assert await session.say(f"delete {text(queue.snd_id)}") == "ok, 1 messages deleted"
    after = await fleet[0].store.stats.read_stats()
    assert after["qDeletedAll"] == before.get("qDeletedAll", 0) + 1
    assert after["qDeletedNew"] == before.get("qDeletedNew", 0) + 1
    event = await recipient.event()
    assert (event.entity_id, event.reply) == (queue.rcv_id, DELD())
    assert await sender.send(queue, b"more") == err(Simple.AUTH)
    user = await Session.open(control, USER)
    assert await user.say(f"delete {text(queue.snd_id)}") == "AUTH"


async def test_suspend_and_resume(fleet: Fleet, control: ControlPort) -> None:
    client = await fleet.client(0)
    ports = [edge.ports for edge in fleet.edges]
    session = await Session.open(control, ADMIN)
    assert await session.say("suspend") == "ok, all edges take no new clients"
    assert not any(edge.ready for edge in fleet.edges)
    await client.smp.ping()  # clients that are connected stay
    assert await session.say("resume") == "ok, all edges take new clients"
    assert all(edge.ready for edge in fleet.edges) and [edge.ports for edge in fleet.edges] == ports
    assert await session.say("suspend") == "ok, all edges take no new clients"
    taken = Mock(side_effect=OSError(errno.EADDRINUSE, "the words of asyncio"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("weir.runtime.edge.bind_shared", taken)
        refused = await session.say("resume")
    assert refused in {f"error: edge {e.edge_id} cannot listen again: address already in use" for e in fleet.edges}
    assert await session.say("resume") == "ok, all edges take new clients"


async def test_clients_are_those_of_all_edges(fleet: Fleet, control: ControlPort) -> None:
    """20 clients, of which the edge that answers has 8."""
    for number in range(20):
        await (await fleet.client(number >= 8)).smp.ping()
    _, *rows = await (await Session.open(control, ADMIN)).all("clients")
    ids = [row.partition(",")[0] for row in rows]
    assert len(set(ids)) == 20
    for edge, count in zip(fleet.edges, (8, 12), strict=True):
        assert sum(client.startswith(f"{edge.edge_id}:") for client in ids) == count
    lines = await (await Session.open(control, USER)).all("server-info")
    assert lines[:2] == ["Threads: 2", "Clients: 20"]
    lines = await (await Session.open(control, USER)).all("sockets")
    assert lines[1:] == ["accepted: 20", "closed: 0", "active: 20", "leaked: 0"]


@pytest.mark.parametrize("number", [0, 1])
async def test_trace_one_client(fleet: Fleet, config: RouterConfig, control: ControlPort, number: int) -> None:
    """On the edge that answers, or on another one. Both edges have a client with the same number."""
    for edge in (0, 1):
        await (await fleet.client(edge)).smp.ping()
    session = await Session.open(control, ADMIN)
    _, *rows = (await session.say("clients", 3)).splitlines()
    (name,) = [row.partition(",")[0] for row in rows if row.startswith(fleet[number].edge_id)]
    assert await session.say(f"trace {name} on") == "error: tracing is off: set [telemetry] traces"
    for edge in fleet.edges:
        edge.config = replace(config, telemetry=Telemetry(traces="http://127.0.0.1:1"))
    (here,) = fleet[number].router.clients.values()
    (other,) = fleet[1 - number].router.clients.values()
    assert await session.say(f"trace {name} on") == "ok"
    assert (here.traced, other.traced) == (True, False)
    assert await session.say(f"trace {name} off") == "ok"
    assert not here.traced
    assert await session.say(f"trace {fleet[0].edge_id}:99999 on") == "error: no such client"
    for wrong in ("x", "1", "edge:x"):
        assert (await session.say(f"trace {wrong} on")).startswith("error: trace CLIENT on|off, where")


async def test_an_edge_that_does_not_answer_is_named(
    fleet: Fleet, control: ControlPort, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("weir.surface.control.fleet._TASK_LIMIT", 0.1)
    fleet[1].store.broadcast.work = AsyncMock(side_effect=UNAVAILABLE)
    await (await fleet.client(0)).smp.ping()
    session = await Session.open(control, ADMIN)
    silent = f"error: no answer from edge {fleet[1].edge_id}"
    assert (await session.say("clients", 3)).splitlines()[2] == silent
    for word in ("suspend", "resume"):
        assert await session.say(word) == silent


async def test_what_is_typed_is_not_logged(
    fleet: Fleet, control: ControlPort, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    queue = await (await fleet.client(0)).new()
    session = await Session.open(control, ADMIN)
    await session.say(f"status {text(queue.snd_id)}")
    await session.say(f"block {text(queue.snd_id)} reason=spam")
    assert "control port: block" in caplog.text
    assert text(queue.snd_id) not in caplog.text
    assert ADMIN not in caplog.text


async def test_sessions_are_bounded_and_long_lines_end_one(control: ControlPort) -> None:
    sessions = [await Session.open(control) for _ in range(16)]
    reader, _ = await asyncio.open_connection("127.0.0.1", control.port)
    assert await reader.read() == b"error: too many sessions\n"
    assert await sessions[0].all("x" * 5000) == []
    await Session.open(control)


async def test_weir_smp_ctl(fleet: Fleet, control: ControlPort, capsys: pytest.CaptureFixture[str]) -> None:
    await (await fleet.client(0)).smp.ping()

    async def ctl(*words: str, password: str = ADMIN) -> tuple[int, str]:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("WEIR_CONTROL_PASSWORD", password)
            code = await asyncio.to_thread(main, ["smp", "ctl", "--port", str(control.port), *words])
        captured = capsys.readouterr()
        return code, captured.out + captured.err

    assert await ctl("save") == (0, "saving server state...\nserver state saved!\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fleet[0], "save", AsyncMock(side_effect=UNAVAILABLE))
        assert await ctl("save") == (1, "saving server state...\nerror: Redis does not answer\n")
    assert (await ctl("help"))[1] == HELP + "\n"
    code, output = await ctl("clients")
    assert code == 0 and output.startswith("clientId,") and output.count("\n") == 2
    assert await ctl("clients", password=USER) == (1, "AUTH\n")
    assert await ctl("status", "A" * 32) == (1, "error: AUTH\n")
    await control.close()
    code, output = await ctl("stats")
    assert (code, output) == (1, f"weir smp ctl: control port 127.0.0.1:{control.port}: connection refused\n")
