"""Rollups of SMP edges under a known load: every count is exact, and no record names anything of a client."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.router.fleet import Fleet, Peer, Queue, err, raw_blocks, router_config
from tests.router.notifier import nkey
from tests.router.proxied import Proxied
from tests.router.service import credentials, service_id, subs, until_alls
from tests.support.leaks import Secrets
from tests.support.redis import discard, start_server
from tests.support.rollups import Sums, count_everything, raw_records, records, sequences, sum_counts, until_records
from weir.crypto.keys import generate
from weir.redis.embedded import Embedded
from weir.router.config import Queues, RouterConfig
from weir.router.rollups import SmpSource
from weir.runtime.settings import Rollups
from weir.telemetry.rollups.fields import COMMANDS, EVENTS, GAUGES, HISTOGRAMS, UNREADABLE
from weir.telemetry.rollups.record import Rollup
from weir.wire.errors import Name, NameErrorTag, Simple
from weir.wire.smp import commands as cmd
from weir.wire.smp import ids_hash
from weir.wire.smp.commands import ServiceRole
from weir.wire.smp.replies import OK, SOKS


@pytest.fixture
def own_redis() -> Iterator[Embedded]:
    server = start_server()
    yield server
    discard(server)


@pytest.fixture
def rollups_config(own_redis: Embedded, identity: Path, placement: Path) -> RouterConfig:
    rollups = Rollups(interval=0.25, router="smp-1.example")  # shorter than a configuration may say
    queues = Queues(notification_interval=0.02, quota=3)
    return replace(router_config(own_redis.url, identity, placement), queues=queues, rollups=rollups)


@pytest.fixture
async def pair(rollups_config: RouterConfig) -> AsyncIterator[Fleet]:
    """Two edges that publish four times a second."""
    fleet = Fleet(rollups_config)
    await fleet.add()
    await fleet.add()
    yield fleet
    await fleet.close()


async def stop(fleet: Fleet) -> None:
    """Stop all edges, and so publish their last records."""
    await fleet.close()
    fleet.edges.clear()
    fleet.clients.clear()


class Load:
    """The work of clients, as the clients count it."""

    def __init__(self) -> None:
        self.commands: dict[str, int] = {}
        self.secrets = Secrets()

    def add(self, name: str, count: int = 1) -> None:
        self.commands[name] = self.commands.get(name, 0) + count

    def queue(self, name: str, queue: Queue) -> None:
        self.secrets.add(f"{name} recipient id", queue.rcv_id)
        self.secrets.add(f"{name} sender id", queue.snd_id)
        self.secrets.add(f"{name} secret", queue.secret)
        self.secrets.add(f"{name} recipient's key", queue.rcv_key.public)


async def messages(load: Load, recipient: Peer, sender: Peer, count: int) -> Queue:
    """Messages of one queue, each acknowledged before the next is sent. Then one that is refused, and one too many."""
    queue = await recipient.new(secure=True)
    load.queue("queue", queue)
    load.add("NEW.OK")
    load.add("KEY.OK")
    for n in range(count):
        assert await sender.send(queue, b"hello %d" % n) == OK()
        msg_id, _ = await recipient.msg(queue)
        load.secrets.add("message id", msg_id)
        assert await recipient.ack(queue, msg_id) == OK()
    load.add("SEND.OK", count)
    load.add("ACK.OK", count)
    await sender.do(cmd.SEND(False, b"forged"), queue.snd_id, generate("x25519"))
    load.add("SEND.AUTH")
    await recipient.ack(queue, bytes(24))
    load.add("ACK.NO_MSG")
    return queue


async def test_the_sums_over_all_records_are_what_clients_did(pair: Fleet, own_redis: Embedded) -> None:
    load = Load()
    r, s, same = await pair.client(0), await pair.client(1), await pair.client(0)
    await messages(load, r, s, 25)
    await until_records(own_redis.url, lambda found: max(map(len, sequences(found).values()), default=0) >= 2)
    await messages(load, r, same, 15)
    edges = [edge.edge_id for edge in pair.edges]
    await stop(pair)
    found = records(own_redis.url)
    sums = Sums(found)
    assert sums.commands == load.commands
    assert sums.events["msgSent"] == sums.events["msgRecv"] == 40
    assert sums.events["msgSentAuth"] == 2
    assert sums.events["qCreated"] == sums.events["qSecured"] == 2
    assert sums.count("send_stored") == sums.count("send_msg") == sums.count("msg_ack") == 40
    assert sums.count("redis_rtt") > 0
    assert set(sequences(found)) == set(edges)
    for edge, numbers in sequences(found).items():
        assert numbers == list(range(1, len(numbers) + 1)), edge
    assert {r.router for r in found} == {"smp-1.example"}
    contents = b"".join(map(gzip.decompress, raw_records(own_redis.url)))
    assert b"SEND.QUOTA" in contents or b"SEND.AUTH" in contents
    assert load.secrets.leaks({"rollups": contents}) == set()


async def test_every_answer_counts_once(pair: Fleet, own_redis: Embedded) -> None:
    """Alone in a block and together, for a client, for a proxy, without a handler, and refused before it begins."""
    quota = pair.config.queues.quota
    a, b = await pair.client(0), await pair.client(1)
    for _ in range(3):
        await a.smp.ping()
    assert await a.do(cmd.RSLV(b"nobody.simplex")) == err(Name(NameErrorTag.NO_RESOLVER))
    queue = await a.new(subscribe=False, secure=True)
    assert await b.do(cmd.GET(), queue.rcv_id, queue.rcv_key) == OK()
    assert [await b.send(queue, b"") for _ in range(quota + 2)] == [OK()] * quota + [err(Simple.QUOTA)] * 2
    queues = [await a.new(subscribe=False) for _ in range(20)]
    requests = [(cmd.SUB(), queue.rcv_id, queue.rcv_key) for queue in queues]
    requests.append((cmd.SUB(), queues[0].rcv_id, generate("x25519")))  # not its key
    requests.append((cmd.SUB(), bytes(24), queues[0].rcv_key))  # no such queue
    answers = [reply for block in await raw_blocks(b, requests, 1) for reply in block]
    assert len(answers) == 22
    nonsense = await pair.client(0)
    nonsense.smp.connection.send_contents([b"\x01\x00\x05nope!"])
    await nonsense.smp.ping()
    assert await a.do(cmd.DEL(), queue.rcv_id, queue.rcv_key) == OK()
    edges = [edge.edge_id for edge in pair.edges]
    await stop(pair)
    assert Sums(records(own_redis.url, edges=edges)).commands == {
        "PING.OK": 4,
        "RSLV.NAME": 1,
        "NEW.OK": 21,
        "KEY.OK": 1,
        "GET.OK": 1,
        "SEND.OK": quota,
        "SEND.QUOTA": 2,
        "SUB.OK": 20,
        "SUB.AUTH": 2,
        "unreadable.BLOCK": 1,
        "DEL.OK": 1,
    }


async def test_forwarded_commands_count_at_the_proxy_and_at_the_relay(
    pair: Fleet, relay: Fleet, own_redis: Embedded
) -> None:
    r = await relay.client()
    queue = await r.new(secure=True)
    p = await pair.client(0)
    through = await Proxied.connect(p, relay.address())
    assert await through.do(cmd.SEND(False, b"hello"), queue.snd_id, queue.snd_key) == OK()
    assert await through.do(cmd.SEND(False, b"hello"), bytes(24), queue.snd_key) == err(Simple.AUTH)
    answers = relay[0].router.answers.totals()
    assert {key: n for key, n in answers.items() if key.startswith(("RFWD", "SEND"))} == {
        "RFWD.OK": 2,
        "SEND.OK": 1,
        "SEND.AUTH": 1,
    }
    await stop(pair)
    assert Sums(records(own_redis.url)).commands == {"PRXY.OK": 1, "PFWD.OK": 2}


async def test_services_by_the_operators_labels(pair: Fleet, own_redis: Embedded) -> None:
    """Two services share a label; a third has none, and is "other" with all that have none."""
    registry = pair[0].store.registry
    sender = await pair.client(0)
    waiting = {"one": 3, "two": 4, "none": 5}
    secrets = Secrets()
    for name, count in waiting.items():
        service = credentials()
        owner = await pair.client(1, service=service)
        sid = await service_id(owner)
        secrets.add(f"{name} service id", sid)
        secrets.add(f"{name} fingerprint", service.cert_hash)
        if name != "none":
            await registry.set_label(sid, "Directory, of all")
        queues = [await owner.new() for _ in range(count)]
        await owner.close()
        for queue in queues:
            await sender.send(queue, b"hello")
        owner = await pair.client(1, service=service)
        hash_ = ids_hash.of_ids(queue.rcv_id for queue in queues)
        more = {"one": 0, "two": 2, "none": 0}[name]
        assert await subs(owner, count - more, hash_) == SOKS(count, hash_)
        await until_alls(owner, queues)

    def all_present(found: list[Rollup]) -> bool:
        present = {(s.label, s.sessions, s.queues) for r in found for s in r.services}
        return {("Directory, of all", 2, 7), ("other", 1, 5)} <= present

    await until_records(own_redis.url, all_present)
    await stop(pair)
    found = records(own_redis.url)
    services = [s for r in found for s in r.services]
    by_label = {label: [s for s in services if s.label == label] for label in {s.label for s in services}}
    assert set(by_label) == {"Directory, of all", "other"}
    assert {s.role for s in services} == {"messages"}
    assert sum(s.delivered for s in services) == 12
    assert sum(sum(s.alls.values()) for s in services) == 3
    assert sum_counts(s.drift for s in services) == {"ok": 2, "more": 1}
    sums = Sums(found)
    assert sums.count("subs_soks") == sums.count("subs_alls") == sums.count("fold_size") == 3
    contents = b"".join(map(gzip.decompress, raw_records(own_redis.url)))
    assert b"Directory, of all" in contents
    assert secrets.leaks({"rollups": contents}) == set()


async def test_a_notification_service(pair: Fleet, own_redis: Embedded) -> None:
    r, s = await pair.client(0), await pair.client(1)
    service = credentials(ServiceRole.NOTIFIER)
    n = await pair.client(1, service=service)
    queue = await r.new(secure=True)
    notifier = await nkey(r, queue)
    await n.do(cmd.NSUB(), notifier.ntf_id, notifier.key)
    assert await s.send(queue, b"hello", True) == OK()
    await n.event()
    await stop(pair)
    services = [s for r in records(own_redis.url) for s in r.services]
    assert {(s.label, s.role) for s in services} == {("other", "notifications")}
    assert sum(s.delivered for s in services) == 1


async def test_what_services_did_is_forgotten_when_they_have_left(pair: Fleet) -> None:
    """Anybody can make a service, so an edge must not remember them all."""
    source = pair[0]._rollups._source  # type: ignore[union-attr]
    assert isinstance(source, SmpSource)
    owner = await pair.client(0, service=credentials())
    queue = await owner.new()
    uses = pair[0].router.stats.services.by_id
    source.take_services()
    assert list(uses) == [await service_id(owner)]
    await owner.close()
    await until_gone(pair, 0)
    source.take_services()
    assert not uses
    assert queue.rcv_id


async def until_gone(fleet: Fleet, edge: int) -> None:
    async with asyncio.timeout(10):
        while fleet[edge].router.clients:
            await asyncio.sleep(0.01)


# The declaration and what an edge publishes are the same.


async def test_every_declared_name_is_published(pair: Fleet) -> None:
    rollups = pair[0]._rollups
    assert rollups is not None
    source = rollups._source
    count_everything(pair[0].router.stats)
    totals = source.totals()
    assert set(totals.events) == set(EVENTS["smp"])
    assert set(totals.histograms) == set(HISTOGRAMS["smp"])
    commands = {kind.__name__ for kind in pair[0].router.answers.by_command}
    assert commands | {UNREADABLE} == set(COMMANDS["smp"])
    written = {"cpu_us", "loop_delay_max_us"}  # by the writer itself
    assert set(source.gauges()) | set(await fleet_gauges(pair)) | written == set(GAUGES["smp"])


async def fleet_gauges(fleet: Fleet) -> dict[str, int]:
    """One edge of a fleet fetches them, as soon as all edges have published themselves."""
    for edge in fleet.edges:
        await edge.save()
    by_edge = [await edge._rollups._source.refresh() for edge in fleet.edges]  # type: ignore[union-attr]
    [found] = [gauges for gauges in by_edge if gauges]
    return found


async def test_numbers_of_the_fleet_come_from_one_edge(pair: Fleet, own_redis: Embedded) -> None:
    r = await pair.client(0)
    queue = await r.new(secure=True)
    assert await r.send(queue, b"hello") == OK()
    for edge in pair.edges:
        await edge.save()
    known = {edge.edge_id: edge._rollups._sequence for edge in pair.edges}  # type: ignore[union-attr]

    def later(found: list[Rollup]) -> list[Rollup]:
        """Records whose numbers were fetched when each edge knew of the other."""
        return [r for r in found if r.sequence > known[r.edge] + 2]

    found = later(await until_records(own_redis.url, lambda found: len({r.edge for r in later(found)}) == 2))
    names = {name for name, gauge in GAUGES["smp"].items() if gauge.fleet}
    [reported] = {r.edge: r.gauges for r in found if names & set(r.gauges)}.values()
    assert reported["fleet_queues"] == reported["fleet_active_queues_day"] == 1
    assert reported["redis_used_bytes"] > 100_000
    assert reported["redis_keys"] > 64


async def test_gauges_of_an_edge(pair: Fleet, own_redis: Embedded) -> None:
    r = await pair.client(0)
    queue = await r.new()
    edge = pair[0].edge_id
    found = await until_records(
        own_redis.url, lambda found: any(r.gauges.get("subscriptions") for r in found), edges=[edge]
    )
    gauges = found[-1].gauges
    assert (gauges["connections"], gauges["subscriptions"]) == (1, 1)
    assert gauges["rss_bytes"] > 1 << 20
    assert 0 < gauges["cpu_us"] < 60_000_000
    assert "fleet_queues" not in gauges or queue


async def test_rollups_can_be_turned_off(rollups_config: RouterConfig, own_redis: Embedded) -> None:
    fleet = Fleet(replace(rollups_config, rollups=Rollups(interval=0.0)))
    await fleet.add()
    r = await fleet.client()
    await r.new()
    await fleet.close()
    assert raw_records(own_redis.url) == []


async def test_a_router_without_a_name_has_that_of_its_program(
    rollups_config: RouterConfig, own_redis: Embedded
) -> None:
    fleet = Fleet(replace(rollups_config, rollups=Rollups()))
    edge = await fleet.add()
    await fleet.close()
    [record] = records(own_redis.url)
    assert (record.router, record.program, record.edge, record.sequence) == ("smp", "smp", edge.edge_id, 1)
