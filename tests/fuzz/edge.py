"""Mutated commands against real edges, over TLS and with a real Redis, on all versions.

    make fuzz-edge FUZZ_SECONDS=3600 [SEED=1]
    python -m tests.fuzz.edge --seed 1 --round 17        # one round of a seed again

A run is a series of rounds. A round draws a protocol version, a kind of session (a client's, a service's, a proxy's)
and an edge from its seed, opens a session (session.py), and sends blocks. After each round, an honest client sends a
message from one edge to another and back, its queue is as it was, and the edges hold no more sessions than before. An
edge must log no error. At the end, count and idsHash of every service are those of its queues.

Two edges in this process share a Redis. Relays are dialled through a SOCKS proxy that leads to these edges only, so
that a mutated host name never reaches a network.
"""

import argparse
import asyncio
import contextlib
import logging
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import uvloop

from tests.fuzz.session import Broken, FuzzSession
from tests.fuzz.session import Queue as Known
from tests.router.fleet import Fleet, Queue, router_config
from tests.router.store.default_keys import keys
from tests.services.service import assert_exact, stored_ids
from tests.support.redis import discard, start_server
from weir.crypto.certificates import make_self_signed
from weir.crypto.identity import init_identity
from weir.crypto.keys import generate
from weir.router.config import Proxy, Queues
from weir.transport.smp import ServiceCredentials
from weir.wire.address import SmpAddress
from weir.wire.smp.commands import ServiceRole
from weir.wire.smp.message import RcvMsgBody
from weir.wire.smp.replies import ERR, OK
from weir.wire.versions import PROXY_HANDSHAKE, RCV_SERVICE, SERVICE_CERTS, SMP_RANGE, VersionRange

BLOCKS = 25
_LIMIT = 30.0


class Log(logging.Handler):
    """Keeps what the edges log as an error."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.errors: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.errors.append(record.getMessage())


class World:
    """Two edges, an honest client, and services that return in many rounds."""

    def __init__(self, fleet: Fleet, log: Log) -> None:
        self.fleet = fleet
        self.log = log
        self.counts: Counter[str] = Counter()
        self.services = [
            ServiceCredentials.self_signed(role, make_self_signed())
            for role in (ServiceRole.MESSAGING, ServiceRole.NOTIFIER)
        ]
        self.service_ids: set[bytes] = set()

    @classmethod
    @contextlib.asynccontextmanager
    async def open(cls, directory: Path) -> "AsyncIterator[World]":
        log = Log()
        logging.getLogger().addHandler(log)
        asyncio.get_running_loop().set_exception_handler(
            lambda _, context: log.errors.append(f"{context['message']}: {context.get('exception')!r}")
        )
        redis = start_server()
        init_identity(directory / "identity", "127.0.0.1")
        fleet = Fleet(router_config(redis.url, directory / "identity", directory))
        socks = await asyncio.start_server(lambda *streams: _relay(fleet, *streams), "127.0.0.1", 0)
        fleet.config = replace(
            fleet.config,
            queues=Queues(notification_interval=0.02, quota=8),
            proxy=Proxy(
                allow_local_relays=True,
                socks_proxy=f"127.0.0.1:{socks.sockets[0].getsockname()[1]}",
                socks_mode="always",
                connect_timeout=3,
                request_timeout=3,
                error_ttl=0.2,
            ),
        )
        try:
            await fleet.add()
            await fleet.add()
            world = cls(fleet, log)
            await world._open_honest()
            yield world
        finally:
            await fleet.close()
            socks.close()
            discard(redis)
            logging.getLogger().removeHandler(log)

    async def _open_honest(self) -> None:
        self.recipient, self.sender = await self.fleet.client(0), await self.fleet.client(1)
        self.queue: Queue = await self.recipient.new(secure=True)
        # The fuzzer knows the ids, as a curious sender or recipient might, and not the keys.
        self.known = Known(self.queue.rcv_id, self.queue.snd_id, generate("x25519"), generate("ed25519"))

    async def round(self, seed: str) -> None:
        """One session of the fuzzer. Raises Broken."""
        rng = random.Random(seed)
        version = rng.choice(range(SMP_RANGE.min, SMP_RANGE.max + 1))
        kinds = ["client"]
        kinds += ["notifier"] * (version >= SERVICE_CERTS) + ["service"] * (version >= RCV_SERVICE)
        kinds += ["proxy"] * (version >= PROXY_HANDSHAKE)
        kind, edge = rng.choice(kinds), rng.randrange(2)
        service = {"service": self.services[0], "notifier": self.services[1]}.get(kind)
        relay = SmpAddress.parse(self.fleet.address(1 - edge))
        assert relay is not None
        peer = await self.fleet.client(
            edge, versions=VersionRange(version, version), service=service, proxy=kind == "proxy"
        )
        if peer.smp.service_id is not None:
            self.service_ids.add(peer.smp.service_id)
        known = [self.known] if version >= 7 else []
        session = FuzzSession(peer.smp, rng, relay.server_host, known)
        try:
            for _ in range(BLOCKS):
                await session.send_block()
                if self.log.errors:
                    raise Broken("an edge failed")
        except Broken as broken:
            logged = f"; an edge logged: {self.log.errors[0]}" if self.log.errors else ""
            where = f"version {version}, {kind}, seed {seed}"
            raise Broken(f"{broken}{logged}\n  {where}\n  the last block: {session.last.hex()}") from None
        finally:
            self.counts += session.counts
            await peer.close()
            self.fleet.clients.remove(peer.smp)
        await self.check_honest()

    async def check_honest(self) -> None:
        """The honest client's queue works, and no session of the fuzzer is left."""
        body = random.randbytes(100)
        if await self.sender.send(self.queue, body) != OK():
            raise Broken("the honest client cannot send")
        event = await self.recipient.event()
        if event.entity_id != self.queue.rcv_id or isinstance(event.reply, ERR):
            raise Broken(f"the honest client got {type(event.reply).__name__}")
        message = self.queue.open(event.reply)  # type: ignore[arg-type]
        if not isinstance(message, RcvMsgBody) or message.body != body:
            raise Broken("the honest client got another message")
        if await self.recipient.ack(self.queue, event.reply.msg_id) != OK():  # type: ignore[union-attr]
            raise Broken("the honest client cannot acknowledge")
        end = time.monotonic() + _LIMIT
        while sum(len(edge.router.clients) for edge in self.fleet.edges) > 2 + self._relay_sessions():
            if time.monotonic() > end:
                raise Broken("an edge keeps a session whose connection has ended")
            await asyncio.sleep(0.01)

    def _relay_sessions(self) -> int:
        """The edges are each other's relays."""
        return sum(len(edge.router.relays) for edge in self.fleet.edges)

    async def check_services(self) -> None:
        edge = self.fleet[0]
        for service_id in self.service_ids:
            await assert_exact(edge, service_id, await stored_ids(edge, service_id))
            for entity_id in await stored_ids(edge, service_id):
                p = edge.store.partition(entity_id)
                names = (keys.queue(p, entity_id), keys.notifier(p, entity_id))
                if not await edge.store.core.ask(p, b"EXISTS", *names):
                    raise Broken("a service has a queue that does not exist")


async def _relay(fleet: Fleet, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """A SOCKS proxy that connects to the edges and to nobody else."""
    ports = [edge.ports[0] for edge in fleet.edges]
    copies: list[asyncio.Task[None]] = []
    try:
        await reader.readexactly(3)
        writer.write(b"\x05\x00")
        kind = (await reader.readexactly(4))[3]
        size = {1: 4, 4: 16}.get(kind) or (await reader.readexactly(1))[0]
        host, port = await reader.readexactly(size), int.from_bytes(await reader.readexactly(2), "big")
        if host != b"\x7f\x00\x00\x01" or port not in ports:
            writer.write(b"\x05\x04\x00\x01" + bytes(6))
            return
        there, back = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"\x05\x00\x00\x01" + bytes(6))
        copies = [asyncio.create_task(_copy(reader, back)), asyncio.create_task(_copy(there, writer))]
        await asyncio.gather(*copies)
    except (asyncio.IncompleteReadError, ConnectionError):
        pass
    finally:
        for copy in copies:
            copy.cancel()
        writer.close()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(65536):
        writer.write(data)
        await writer.drain()
    writer.close()


async def run(seconds: float, seed: int, only: int | None = None, rounds: int | None = None) -> Counter[str]:
    """Fuzz for some seconds or rounds. Raises Broken. Returns what was counted."""
    with tempfile.TemporaryDirectory(prefix="weir-fuzz-") as directory:
        async with World.open(Path(directory)) as world:
            end, number = time.monotonic() + seconds, only or 0
            while time.monotonic() < end and (rounds is None or number < rounds):
                await world.round(f"{seed}:{number}")
                world.counts["rounds"] += 1
                number += 1
                if only is not None:
                    break
            await world.check_services()
            return world.counts


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.edge")
    parser.add_argument("--seconds", type=float, default=60, help="length of the run (60)")
    parser.add_argument("--seed", type=int, default=random.randrange(2**32), help="seed of the run (random)")
    parser.add_argument("--round", type=int, help="repeat one round of a seed")
    options = parser.parse_args(arguments)
    print(f"seed {options.seed}", flush=True)
    try:
        counts = uvloop.run(run(options.seconds, options.seed, options.round))
    except Broken as broken:
        print(f"FAILED {broken}")
        return 1
    print("ok     " + ", ".join(f"{count} {name}" for name, count in counts.most_common()))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
