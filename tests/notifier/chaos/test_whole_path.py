"""SEND → NMSG → push → the device's two layers, through two SMP edges and two NTF edges, while each of them is killed.

What the SMP router still has, or an NTF edge has received, must reach the device. The SMP router forgets a notification
when it hands it to a connection, so one that was on its way to a killed edge is gone: nobody promises otherwise.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.notifier.chaos.devices import Device, Sender, add_queue, make_device, until
from tests.notifier.chaos.world import PREFIX, World
from tests.router.fleet import Peer
from tests.support.redis import client_of
from weir.client.ntf import NtfClient
from weir.client.smp import SmpClient
from weir.wire.ntf.types import SCHK, SUB, SubStatus

_QUEUES = 2  # of each device
_SENDERS = 8
_ID, _TIME, _NONCE = 24, 8, 24  # an entry of a token's notifications begins with subscription id, time, nonce


@dataclass(frozen=True)
class Plan:
    devices: int
    notifications: int
    kills: dict[str, int]
    limit: float  # seconds for each phase
    seed: int = 1


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    world = World(tmp_path, random.Random("world"))
    try:
        await world.start()
        yield world
    finally:
        await world.stop()


async def make_devices(world: World, count: int) -> list[Device]:
    async with (
        await NtfClient.connect(world.ntf[0].address, reply_timeout=30) as ntf,
        await SmpClient.connect(world.smp[0].address, reply_timeout=30) as smp,
    ):
        devices = list(await asyncio.gather(*(make_device(world, ntf, number) for number in range(count))))
        peer = Peer(smp)
        for device in devices:
            for _ in range(_QUEUES):
                await add_queue(device, ntf, peer)
    return devices


async def all_subscribed(world: World, devices: list[Device], limit: float) -> None:
    """SCHK says ACTIVE for every subscription."""

    async def check() -> bool:
        async with await NtfClient.connect(world.ntf[0].address, reply_timeout=30) as ntf:
            asked = [(one.sub_id, device.key) for device in devices for one in device.queues]
            answers = await asyncio.gather(*(ntf.send(SCHK(), sub_id, key) for sub_id, key in asked))
        return all(answer == SUB(SubStatus.ACTIVE) for answer in answers)

    await until(check, limit, "every subscription is active")


async def send_and_kill(world: World, devices: list[Device], plan: Plan) -> None:
    """Send from several connections, while a seeded plan kills processes at points of the way."""
    rng = random.Random(f"whole path {plan.seed}")
    kills = [what for what, count in plan.kills.items() for _ in range(count)]
    rng.shuffle(kills)
    points = sorted(rng.randrange(plan.notifications // 20, plan.notifications) for _ in kills)
    queues = [one for device in devices for one in device.queues]
    sent = 0
    reached = asyncio.Condition()

    async def sending(number: int) -> None:
        nonlocal sent
        sender = Sender(world)
        for _ in range(number, plan.notifications, _SENDERS):
            await sender.send(rng.choice(queues).queue, b"message")
            async with reached:
                sent += 1
                reached.notify_all()
        await sender.close()

    async def killing() -> None:
        for point, what in zip(points, kills, strict=True):
            async with reached:
                await reached.wait_for(lambda point=point: sent >= point)  # type: ignore[misc]
            await world.hit(what)

    async with asyncio.timeout(plan.limit):
        await asyncio.gather(killing(), *(sending(number) for number in range(_SENDERS)))


async def settled(world: World, devices: list[Device], limit: float) -> None:
    """The SMP router has no notification left, the NTF router no push, and what it has received is pushed.

    A notification that was just handed over is for a moment neither at the SMP router nor in the NTF router's store.
    """

    async def nothing_waits() -> bool:
        with client_of(world.redis.node) as redis:
            waiting = [*redis.scan_iter(b"{[0-9]*}:f:*", 1000), *redis.scan_iter(b"{%b*}:w:*" % PREFIX.encode(), 1000)]
        return not waiting

    async def all_pushed() -> bool:
        keeps = kept(world)
        return all(set(keeps.get(device.ids.token_id, ())) <= nonces(device) for device in devices)

    await until(nothing_waits, limit, "no notification and no push waits")
    await until(all_pushed, limit, "every notification that was received is pushed")


def nonces(device: Device) -> set[bytes]:
    """The notifications that were pushed to a device."""
    return {message.nonce for messages in device.messages() for message in messages}


def kept(world: World) -> dict[bytes, list[bytes]]:
    """The nonces that the NTF router keeps for each token: the newest notification of each subscription."""
    found: dict[bytes, list[bytes]] = {}
    with client_of(world.redis.node) as redis:
        for key in redis.scan_iter(b"{%b*}:l:*" % PREFIX.encode(), 1000):
            token_id = key.partition(b"}:l:")[2]
            entries: list[bytes] = redis.lrange(key, 0, -1)  # type: ignore[assignment]
            found[token_id] = [entry[_ID + _TIME : _ID + _TIME + _NONCE] for entry in entries]
    return found


def judge(world: World, devices: list[Device], kills: int) -> None:
    """Every device opens each of its pushes, and got few of them twice. `settled` has seen that none is missing."""
    assert len(kept(world)) == len(devices), "every device has been sent something"
    for device in devices:
        pushes = device.messages()
        for messages in pushes:
            for message in messages:
                device.open_second_layer(message)
        contents = Counter(tuple(message.nonce for message in messages) for messages in pushes)
        repeated = sum(contents.values()) - len(contents)
        assert repeated <= kills, f"{repeated} pushes twice, after {kills} kills"


async def probe(world: World, devices: list[Device], limit: float) -> None:
    """After everything, one more notification of every queue arrives.

    A push repeats the newest notification of the token's other queues, so only notifications that are new count.
    """
    before = {device.ids.token_id: nonces(device) for device in devices}
    sender = Sender(world)
    for device in devices:
        for one in device.queues:
            await sender.send(one.queue, b"probe")
    await sender.close()

    async def arrived() -> bool:
        for device in devices:
            known = before[device.ids.token_id]
            messages = [message for push in device.messages() for message in push]
            seen = {message.queue.notifier_id for message in messages if message.nonce not in known}
            if not {one.notifier.ntf_id for one in device.queues} <= seen:
                return False
        return True

    await until(arrived, limit, "every queue's last notification arrives")


async def survive(world: World, plan: Plan) -> None:
    devices = await make_devices(world, plan.devices)
    await all_subscribed(world, devices, plan.limit)
    await send_and_kill(world, devices, plan)
    await settled(world, devices, plan.limit)
    judge(world, devices, sum(plan.kills.values()))
    await all_subscribed(world, devices, plan.limit)
    await probe(world, devices, plan.limit)
    await settled(world, devices, plan.limit)
    judge(world, devices, sum(plan.kills.values()))
    assert world.errors() == []


@pytest.mark.timeout(120)
async def test_the_whole_path(world: World) -> None:
    await survive(world, Plan(devices=6, notifications=60, kills={}, limit=60))


@pytest.mark.all("kills processes for a minute")
@pytest.mark.timeout(400)
async def test_kills_in_a_short_run(world: World) -> None:
    plan = Plan(devices=40, notifications=1500, kills={"ntf": 2, "smp": 2, "redis": 2}, limit=180)
    await survive(world, plan)


@pytest.mark.soak
@pytest.mark.timeout(2400)
@pytest.mark.parametrize("seed", [1, 2, 3])
async def test_kills_in_a_long_run(world: World, seed: int) -> None:
    plan = Plan(devices=200, notifications=10_000, kills={"ntf": 6, "smp": 4, "redis": 4}, limit=1200, seed=seed)
    await survive(world, plan)
