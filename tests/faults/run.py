"""One run, in a network namespace of its own: `python -m tests.faults.run PLAN SECONDS DIRECTORY`.

    start the world and the clients ──► faults by the seed's plan, while clients work ──► mend everything
      ──► stop what changes queues ──► wait until nothing is under way ──► probes ──► read what is kept ──► judge

PLAN is a file with a printed plan; DIRECTORY keeps `history` and the logs of edges. The exit code is 1 if the checker
found something.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import sys
import time
import traceback
from collections import Counter
from pathlib import Path

import uvloop

from tests.faults.actors import Actor, Device, Holder, Reader, Sender
from tests.faults.checker import check
from tests.faults.clients import Crowd
from tests.faults.finish import Finish
from tests.faults.history import Writer
from tests.faults.mover import Mover
from tests.faults.network import NO_NAMESPACES, enter, open_run
from tests.faults.plan import Plan, read_plan
from tests.faults.world import World
from weir.crypto.certificates import make_self_signed
from weir.transport.smp import ServiceCredentials
from weir.wire.smp.commands import ServiceRole

SERVICE = "service"
_PLAIN, _IN_SERVICE, _SPARE, _READ, _CONTACT = 16, 6, 2, 1, 2
_BEFORE = 1.0  # seconds in which clients work and nothing fails


class Run:
    def __init__(self, plan: Plan, seconds: float, directory: Path, broken: str = "") -> None:
        self.plan = plan
        self.seconds = seconds
        self.history = Writer(directory / "history")
        self.world = World(plan.redis, directory, broken)
        self.rng = random.Random(f"clients {plan.seed}")
        self.took = 0.0

    async def go(self) -> list[str]:
        """Return what must not have happened."""
        problems = []
        began = time.monotonic()
        try:
            await self.world.start()
            await self._work()
        except Exception as error:
            traceback.print_exc()
            problems.append(f"the run did not come to its end: {type(error).__name__} {error}")
        self.took = time.monotonic() - began
        try:
            return [*problems, *check(self.history.lines), *self.world.errors()]
        finally:
            self.world.stop()

    async def _work(self) -> None:
        addresses = [edge.address for edge in self.world.edges]
        crowd = self.crowd = Crowd(self.history, addresses, self.rng)
        credentials = ServiceCredentials.self_signed(ServiceRole.MESSAGING, make_self_signed())
        crowd.services[SERVICE] = credentials
        await self._make_queues()
        devices = [Device(crowd) for _ in range(3)]
        holders = [Holder(crowd, SERVICE) for _ in range(2)]
        mover = self._mover(devices, holders)
        others: list[Actor] = [Reader(crowd, queue) for queue in self.read for _ in range(2)]
        others += [Sender(crowd, queue) for queue in crowd.queues]
        for queue in self.plain:
            self.rng.choice(devices).take(queue)
        holders[0].take_service()
        for actor in (*devices, *holders, mover, *others):
            actor.spawn(actor.run())
        await asyncio.sleep(_BEFORE)
        await self._suffer()
        self.world.mend()
        finish = Finish(crowd, devices, holders)
        await finish.everything_works()
        await mover.finish()
        for actor in (*others, *mover.senders):
            await actor.stop()
        await finish.settle()
        for actor in (*devices, *holders):
            await actor.stop()
        await finish.read()

    async def _make_queues(self) -> None:
        crowd = self.crowd
        self.served = await crowd.make_queues(_IN_SERVICE, service=SERVICE)
        self.plain = await crowd.make_queues(_PLAIN)
        self.spare = await crowd.make_queues(_SPARE)
        self.read = await crowd.make_queues(_READ)
        self.contacts = await crowd.make_queues(_CONTACT, contact=True)

    def _mover(self, devices: list[Device], holders: list[Holder]) -> Mover:
        mortal = [*self.plain[4:], *self.served[::2]]
        self.rng.shuffle(mortal)
        return Mover(self.crowd, devices, holders, list(self.plain), list(self.spare), self.contacts, mortal)

    async def _suffer(self) -> None:
        began = time.monotonic()
        under_way: list[asyncio.Task[None]] = []
        for fault in self.plan.faults:
            await asyncio.sleep(max(0.0, began + fault.at - time.monotonic()))
            self.history.write("fault", what=str(fault))
            under_way.append(asyncio.ensure_future(self.world.suffer(fault)))
        await asyncio.sleep(max(0.0, began + self.seconds - time.monotonic()))
        await asyncio.gather(*under_way)

    def report(self) -> str:
        counts = Counter(
            f"{line['name']} {line['result']}" if line["is"] == "done" else line["name"] for line in self._answers()
        )
        shown = ", ".join(f"{count} {name}" for name, count in sorted(counts.items()))
        return f"{self.took:.0f} s; {shown}"

    def _answers(self) -> list[dict[str, object]]:
        names = {line["op"]: line["name"] for line in self.history.lines if line["is"] == "call"}
        return [
            {**line, "name": names[line["op"]]} if line["is"] == "done" else line
            for line in self.history.lines
            if line["is"] in ("done", "event")
        ]


async def _run(run: Run) -> int:
    problems = await run.go()
    print(run.plan)
    print(f"  {run.report()}")
    for problem in problems:
        print(f"  WRONG: {problem}")
    return 1 if problems else 0


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.faults.run")
    parser.add_argument("plan", type=Path)
    parser.add_argument("seconds", type=float)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--broken", default="", help="a fault of the edges themselves (broken.py)")
    parser.add_argument("--inside", action="store_true", help="the process is in a network namespace of its own")
    args = parser.parse_args()
    if not args.inside:
        words = enter()
        if not words:
            print(NO_NAMESPACES)
            return 2
        os.execvp(words[0], [*words, sys.executable, "-m", "tests.faults.run", "--inside", *sys.argv[1:]])
    open_run()
    args.directory.mkdir(parents=True, exist_ok=True)
    run = Run(read_plan(args.plan.read_text()), args.seconds, args.directory, args.broken)
    return uvloop.run(_run(run))


if __name__ == "__main__":
    sys.exit(main())
