"""Messages between pairs of clients over edges and a Redis, all of which are killed while they work."""

from __future__ import annotations

import asyncio
import json
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from tests.chaos.backends import Backend
from tests.chaos.journal import Journal
from tests.chaos.processes import Deployment, EdgeProcess
from tests.chaos.worker import PairKeys
from weir.client.smp import SmpClient
from weir.crypto.certificates import make_self_signed
from weir.crypto.keys import dh, generate
from weir.transport.smp import ServiceCredentials
from weir.wire.smp.commands import KEY, NEW, QUE, MessagingReq, ServiceRole
from weir.wire.smp.replies import IDS, INFO, OK

_LOOK = 0.1


@dataclass(frozen=True)
class Plan:
    """How many messages, and how often each kind of process is killed on the way."""

    pairs: int
    messages: int  # of all pairs
    kills: dict[str, int]
    seed: int = 1
    workers: int = 2  # of senders, and of receivers
    served: int = 0  # pairs whose receiver is a service, in one process of its own
    limit: float = 600.0  # seconds in which all of it must be done


class ClientProcess:
    """Senders or receivers of some pairs."""

    def __init__(self, run: Run, kind: str, number: int, pairs: list[PairKeys]) -> None:
        """`kind`: send, receive or serve."""
        self.run, self.kind, self.number, self.pairs = run, kind, number, pairs
        self.generation = 0
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Goes on where the journals say that its predecessor was."""
        self.generation += 1
        run = self.run
        run.journal.update()
        state: dict[int, list[int]] = {}
        for keys in self.pairs:
            pair = run.journal.pairs[keys.number]
            state[keys.number] = list(pair.next_attempt()) if self.kind == "send" else [pair.subscriptions]
        order = {
            "kind": self.kind,
            "addresses": [str(edge.address) for edge in run.edges],
            "journal": str(run.directory / f"{self.kind}-{self.number}.journal"),
            "seed": run.plan.seed * 1000 + self.generation * 10 + self.number,
            "total": run.plan.messages // run.plan.pairs,
            "pairs": [keys.to_json() for keys in self.pairs],
            "state": state,
            "service": [
                raw.hex() for raw in (run.service.certificate, run.service.key.public, run.service.key.private)
            ],
        }
        with (run.directory / "workers.log").open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "tests.chaos.worker"],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                cwd=Path(__file__).parents[2],
                start_new_session=True,
            )
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(order).encode() + b"\n")
        self.process.stdin.flush()

    def kill(self) -> None:
        if self.process is not None:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait()


@dataclass
class Run:
    """`await Run(plan, directory, backend).go()`, then look at `journal`."""

    plan: Plan
    directory: Path
    backend: Backend
    edges: list[EdgeProcess] = field(default_factory=list)
    clients: list[ClientProcess] = field(default_factory=list)
    killed: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.journal = Journal(self.directory)
        self.rng = random.Random(self.plan.seed)
        self.service = make_self_signed()
        self.seconds = 0.0

    async def go(self) -> None:
        try:
            await self._start()
            began = time.monotonic()
            async with asyncio.timeout(self.plan.limit):
                await self._wreck()
                await self._finish()
            self.seconds = time.monotonic() - began
            await self._check_empty()
        finally:
            self._stop()

    async def _start(self) -> None:
        self.backend.start()
        deployment = Deployment(self.directory, self.backend.url, self.backend.settings)
        self.edges = [EdgeProcess(deployment) for _ in range(2)]
        await asyncio.gather(*(edge.start() for edge in self.edges))
        self.pairs = await self._make_pairs()
        plain = self.plan.pairs - self.plan.served
        for n in range(self.plan.workers):
            self.clients.append(ClientProcess(self, "send", n, self.pairs[n :: self.plan.workers]))
            self.clients.append(ClientProcess(self, "receive", n, self.pairs[n : plain : self.plan.workers]))
        if self.plan.served:
            self.clients.append(ClientProcess(self, "serve", 0, self.pairs[plain:]))
        for client in self.clients:
            client.start()

    async def _make_pairs(self) -> list[PairKeys]:
        made = []
        credentials = ServiceCredentials.self_signed(ServiceRole.MESSAGING, self.service)
        async with (
            await SmpClient.connect(self.edges[0].address) as plain,
            await SmpClient.connect(self.edges[0].address, service=credentials) as service,
        ):
            for number in range(self.plan.pairs):
                served = number >= self.plan.pairs - self.plan.served
                client = service if served else plain
                rcv_key, dh_key, snd_key = generate("x25519"), generate("x25519"), generate("x25519")
                command = NEW(rcv_key.spki, dh_key.public, subscribe=served, queue_req=MessagingReq())
                ids = await client.send(command, b"", rcv_key)
                assert isinstance(ids, IDS), ids
                assert await client.send(KEY(snd_key.spki), ids.rcv_id, rcv_key) == OK()
                secret = dh(ids.dh_key, dh_key.private)
                made.append(PairKeys(number, ids.rcv_id, ids.snd_id, rcv_key, snd_key, secret))
        return made

    async def _wreck(self) -> None:
        """Kills at random numbers of messages that were confirmed."""
        total = self.plan.messages
        victims = [kind for kind, count in self.plan.kills.items() for _ in range(count)]
        self.rng.shuffle(victims)
        points = sorted(self.rng.randrange(total * 95 // 100) for _ in victims)
        for point, victim in zip(points, victims, strict=True):
            while self.journal.confirmed < point:
                self._look()
                await asyncio.sleep(_LOOK)
            self.killed[victim] += 1
            await self._kill(victim)

    async def _kill(self, victim: str) -> None:
        if victim == "edge":
            edge = self.rng.choice(self.edges)
            edge.kill()
            await asyncio.sleep(self.rng.choice((0.0, 0.5)))
            await edge.start()
        elif victim == "drain":
            edge = self.rng.choice(self.edges)
            assert await edge.stop() == 0
            await edge.start()
        elif victim == "redis":
            await self.backend.hit(self.rng)
        else:
            client = self.rng.choice([client for client in self.clients if client.kind == victim])
            client.kill()
            client.start()

    def _look(self) -> None:
        self.journal.update()
        for client in self.clients:
            process = client.process
            assert process is not None
            ended = process.poll()
            done = client.kind == "send" and ended == 0
            assert ended is None or done, (self.directory / "workers.log").read_text()[-4000:]

    async def _finish(self) -> None:
        """Until everything that was confirmed has been received."""
        while True:
            self._look()
            sent = self.journal.confirmed == self.plan.messages // self.plan.pairs * self.plan.pairs
            if sent and not self.journal.missing:
                return
            await asyncio.sleep(_LOOK)

    async def _check_empty(self) -> None:
        """Messages without an answer may still be on their way. After that, every queue is empty."""
        async with await SmpClient.connect(self.edges[0].address) as client:
            for pair in self.pairs:
                async with asyncio.timeout(30):
                    while True:
                        reply = await client.send(QUE(), pair.rcv_id, pair.rcv_key)
                        assert isinstance(reply, INFO), reply
                        if json.loads(reply.json)["qiSize"] == 0:
                            break
                        await asyncio.sleep(0.05)
        self.journal.update()

    def _stop(self) -> None:
        for client in self.clients:
            client.kill()
        for edge in self.edges:
            edge.kill()
        self.backend.stop()

    def report(self) -> str:
        counts = self.journal.counts
        kills = ", ".join(f"{count} {kind}" for kind, count in sorted(self.killed.items()))
        return (
            f"{self.journal.confirmed} messages confirmed ({counts['T']} attempts, {counts['Q']} QUOTA, "
            f"{counts['U']} errors), {counts['M']} deliveries over {counts['S']} subscriptions, "
            f"{counts['A']} acknowledged, in {self.seconds:.0f} s; killed: {kills}"
        )
