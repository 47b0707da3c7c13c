"""Rollups of an NTF edge, beside an SMP edge on the same Redis: counts are exact, and no record names a device."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.notifier import fleet as ntf
from tests.notifier.chaos.devices import Device, add_queue, make_device
from tests.notifier.router import notifier_config
from tests.notifier.test_no_leaks import add_device, add_pushes
from tests.router import fleet as smp
from tests.support.leaks import Secrets
from tests.support.redis import discard, start_server
from tests.support.rollups import Sums, count_everything, raw_records, records, sequences, until_records
from weir.bench.standins.apns import Apns
from weir.bench.standins.authority import Authority
from weir.client.ntf import NtfClient
from weir.client.smp import SmpClient
from weir.crypto import p256
from weir.notifier import config as settings
from weir.redis.embedded import Embedded
from weir.runtime.settings import Rollups
from weir.telemetry.rollups.fields import COMMANDS, EVENTS, GAUGES, HISTOGRAMS, UNREADABLE
from weir.wire.address import SmpAddress
from weir.wire.ntf.types import TCHK
from weir.wire.smp.commands import SEND
from weir.wire.smp.replies import OK

KEY_ID, TEAM_ID, TOPIC = "KEY4567890", "TEAM567890", "dev.weir.app"
ROLLUPS = Rollups(interval=0.25)  # shorter than a configuration may say


@pytest.fixture
def own_redis() -> Iterator[Embedded]:
    server = start_server()
    yield server
    discard(server)


@dataclass
class World:
    """One SMP edge and one NTF edge on one Redis, and Apple's service, as `make_device` expects them."""

    url: str
    smp_fleet: smp.Fleet
    ntf_fleet: ntf.Fleet
    apns: Apns
    smp: list[SimpleNamespace]

    async def device(self) -> tuple[Device, NtfClient]:
        client = await self.ntf_fleet.client()
        device = await make_device(self, client, 0)  # type: ignore[arg-type]
        await add_queue(device, client, await self.smp_fleet.client())
        return device, client

    async def stop(self) -> None:
        for fleet in (self.ntf_fleet, self.smp_fleet):
            await fleet.close()
            fleet.edges.clear()
            fleet.clients.clear()


@pytest.fixture
async def world(own_redis: Embedded, identity: Path, keys: Path, tmp_path: Path) -> AsyncIterator[World]:
    authority, key = Authority(), p256.generate()
    p256.save_key(tmp_path / "apns.p8", key)
    (tmp_path / "ca.pem").write_bytes(authority.pem)
    apns = Apns(authority, key=key.public_key(), key_id=KEY_ID, team_id=TEAM_ID, topic=TOPIC)
    await apns.start()
    smp_fleet = smp.Fleet(replace(smp.router_config(own_redis.url, identity, keys), rollups=ROLLUPS))
    address = SmpAddress.parse((await smp_fleet.add()).address)
    config = notifier_config(own_redis.url, identity, keys)
    config = replace(
        config,
        redis=replace(config.redis, prefix="ntf"),
        subscriber=replace(config.subscriber, allow_local_servers=True, own_server_domains=("127.0.0.1",)),
        apns=settings.Apns(
            key=tmp_path / "apns.p8",
            key_id=KEY_ID,
            team_id=TEAM_ID,
            topic=TOPIC,
            host=f"localhost:{apns.server.port}",
            ca=tmp_path / "ca.pem",
        ),
        rollups=ROLLUPS,
    )
    ntf_fleet = ntf.Fleet(config)
    await ntf_fleet.add()
    world = World(own_redis.url, smp_fleet, ntf_fleet, apns, [SimpleNamespace(address=address)])
    yield world
    await world.stop()
    await apns.close()


async def pushed(device: Device, count: int) -> None:
    async with asyncio.timeout(30):
        while len(device.messages()) < count:
            await asyncio.sleep(0.02)


async def test_two_programs_on_one_redis(world: World) -> None:
    """Each counts what clients did with it, in a stream of its own."""
    device, client = await world.device()
    secrets = Secrets()
    [subscribed] = device.queues
    sender = await SmpClient.connect(world.smp[0].address)
    edge = world.ntf_fleet[0]
    async with asyncio.timeout(30):
        while edge.subscriber.numbers()["smp_servers_subscribed"] != 1:
            await asyncio.sleep(0.02)
    for n in range(5):  # one push after the other: notifications that come together share one
        answer = await sender.send(SEND(True, b"%d" % n), subscribed.queue.snd_id, subscribed.queue.snd_key)
        assert answer == OK()
        await pushed(device, n + 1)
    await client.send(TCHK(), device.ids.token_id, device.key)
    await client.send(TCHK(), bytes(24), device.key)  # AUTH
    add_device(secrets, "device", device)
    add_pushes(secrets, device)
    await until_records(world.url, lambda found: any(r.gauges.get("fleet_tokens") == 1 for r in found), "ntf")
    await world.stop()
    await sender.close()

    found = records(world.url, "ntf")
    sums = Sums(found)
    assert sums.commands == {
        "PING.OK": 1,
        "TNEW.OK": 1,
        "TVFY.OK": 1,
        "SNEW.OK": 1,
        "TCHK.OK": 1,
        "TCHK.AUTH": 1,
    }
    assert sums.events["ntfReceived"] == sums.events["ntfDelivered"] == sums.events["ntfReceivedOwn"] == 5
    assert sums.events["ntfDeliveredOwn"] == 5
    assert sums.events["pushes_apns_prod_delivered"] == 6, "and the verification"
    assert sums.events["ntfVrfDelivered"] == 1
    assert sums.count("nmsg_push") == 5
    assert sums.count("redis_rtt") > 0
    assert {(r.router, r.program) for r in found} == {("ntf", "ntf")}
    assert all(numbers == list(range(1, len(numbers) + 1)) for numbers in sequences(found).values())
    assert any(r.gauges.get("smp_servers_active") == r.gauges.get("smp_servers_owned") == 1 for r in found)

    of_smp = records(world.url)
    assert {(r.router, r.program) for r in of_smp} == {("smp", "smp")}
    assert Sums(of_smp).commands["SEND.OK"] == Sums(of_smp).events["msgNtfs"] == 5
    services = [s for r in of_smp for s in r.services]
    assert {(s.label, s.role) for s in services} == {("other", "notifications")}
    assert sum(s.delivered for s in services) == 5

    contents = b"".join(map(gzip.decompress, raw_records(world.url, "ntf") + raw_records(world.url)))
    assert b"pushes_apns_prod_delivered" in contents
    assert secrets.leaks({"rollups": contents}) == set()
    assert b"127.0.0.1" not in contents, "no host of an SMP router"


async def test_every_declared_name_is_published(world: World) -> None:
    edge = world.ntf_fleet[0]
    rollups = edge._rollups
    assert rollups is not None
    source = rollups._source
    for stats in (edge.stats, edge.subscriber.stats):
        count_everything(stats)
    for name in EVENTS["ntf"]:
        group, _, key = name.partition("_")
        if group in ("pushes", "pushLimited"):
            getattr(edge.stats, group)[key] = 1
    totals = source.totals()
    assert set(totals.events) == set(EVENTS["ntf"])
    assert set(totals.histograms) == set(HISTOGRAMS["ntf"])
    commands = {kind.__name__ for kind in edge.router.answers.by_command}
    assert commands | {UNREADABLE} == set(COMMANDS["ntf"])
    await edge.save()
    written = {"cpu_us", "loop_delay_max_us"}  # by the writer itself
    assert set(source.gauges()) | set(await source.refresh()) | written == set(GAUGES["ntf"])
