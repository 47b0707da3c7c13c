"""A rotation of Redis' password under traffic: `weir redis`, two edges, and Redis restarted in every state."""

from __future__ import annotations

import asyncio
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.router.fleet import Fleet, Peer, Queue, body_of, router_config
from tests.support.ports import free_port
from weir.wire.errors import Simple
from weir.wire.smp.replies import ERR, MSG, OK

pytestmark = pytest.mark.all("Redis is restarted several times")


class WeirRedis:
    """`weir redis` on one directory, started again and again."""

    def __init__(self, directory: Path) -> None:
        self.port = free_port()
        self.passwords = directory / "redis-passwords"
        self._data = directory / "redis"
        self._process: Process | None = None

    async def start(self) -> None:
        words = ["redis", "--dir", str(self._data), "--port", str(self.port), "--listen", "127.0.0.1"]
        words += ["--durability", "fsync", "--password-file", str(self.passwords)]
        self._process = await asyncio.create_subprocess_exec(sys.executable, "-m", "weir.cli.main", *words, stdout=PIPE)
        assert "listening" in await self._line()

    async def accept(self, *passwords: str) -> None:
        self.passwords.write_text("\n".join(passwords))
        assert "has changed" in await self._line()

    async def _line(self) -> str:
        assert self._process is not None and self._process.stdout is not None
        return (await self._process.stdout.readline()).decode()

    async def stop(self) -> None:
        if self._process is not None:
            self._process.terminate()
            await self._process.wait()
            self._process = None

    async def restart(self) -> None:
        await self.stop()
        await self.start()


class Traffic:
    """One message after the other from one edge to the other. A message is repeated until it is confirmed."""

    def __init__(self, sender: Peer, recipient: Peer, queue: Queue) -> None:
        self.sender, self.recipient, self.queue = sender, recipient, queue
        self.confirmed = 0
        self.received: list[int] = []
        self.arrived = asyncio.Condition()

    async def send(self) -> None:
        while True:
            reply = await self.sender.send(self.queue, b"%d" % self.confirmed)
            if reply == OK():
                self.confirmed += 1
            else:
                assert reply == ERR(Simple.INTERNAL) or reply == ERR(Simple.QUOTA), reply
            await asyncio.sleep(0.01)

    async def receive(self) -> None:
        message: object = None
        while True:
            if not isinstance(message, MSG):
                message = (await self.recipient.smp.events.get()).reply
            assert isinstance(message, MSG), message
            async with self.arrived:
                self.received.append(int(body_of(self.queue, message)))
                self.arrived.notify_all()
            # The answer may be the next message.
            while (answer := await self.recipient.ack(self.queue, message.msg_id)) == ERR(Simple.INTERNAL):
                await asyncio.sleep(0.05)
            message = answer

    async def flows(self) -> None:
        """Twenty more messages arrive."""
        count = len(self.received) + 20
        async with asyncio.timeout(40), self.arrived:
            await self.arrived.wait_for(lambda: len(self.received) >= count)


@pytest.fixture
async def own_redis(tmp_path: Path) -> AsyncIterator[WeirRedis]:
    server = WeirRedis(tmp_path)
    server.passwords.write_text("old")
    await server.start()
    yield server
    await server.stop()


@pytest.mark.timeout(240)
async def test_no_message_is_lost_while_the_password_is_rotated(
    own_redis: WeirRedis, identity: Path, tmp_path: Path
) -> None:
    files = [tmp_path / "one", tmp_path / "two"]
    base = router_config(f"redis://127.0.0.1:{own_redis.port}", identity, tmp_path)
    fleet = Fleet(base)
    for file in files:
        file.write_text("old")
        await fleet.add(redis=replace(base.redis, password_file=file, lease=60.0))
    jobs: list[asyncio.Task[None]] = []
    try:
        recipient, sender = await fleet.client(0), await fleet.client(1)
        traffic = Traffic(sender, recipient, await recipient.new(secure=True))
        jobs += [asyncio.create_task(traffic.receive()), asyncio.create_task(traffic.send())]
        await traffic.flows()
        await own_redis.accept("old", "new")
        await own_redis.restart()
        await traffic.flows()
        files[0].write_text("new")  # the kubelet has reached one pod
        await own_redis.accept("new", "old")
        await own_redis.restart()
        await traffic.flows()
        files[1].write_text("new")
        await own_redis.accept("new")
        await own_redis.restart()
        await traffic.flows()
        jobs[1].cancel()
        async with asyncio.timeout(40), traffic.arrived:
            await traffic.arrived.wait_for(lambda: traffic.received[-1] >= traffic.confirmed - 1)
        # A message whose confirmation was lost has come twice: nothing is missing, and nothing is out of order.
        assert sorted(set(traffic.received)) == list(range(traffic.received[-1] + 1))
        assert traffic.received == sorted(traffic.received)
        assert not recipient.smp.closed.is_set() and not sender.smp.closed.is_set()
    finally:
        for job in jobs:
            job.cancel()
        failures = [done for done in await asyncio.gather(*jobs, return_exceptions=True) if isinstance(done, Exception)]
        await fleet.close()
        assert failures == []
