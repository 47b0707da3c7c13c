"""Messages between pairs of clients outside the pods, all the while: what was confirmed must arrive, once and in order.

The workers and the journal are those of tests/chaos; here they run in the cluster's network, at a quiet pace, and find
another edge by themselves when theirs is gone. `python -m tests.cluster.traffic` is such a worker.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from tests.chaos.journal import Journal
from tests.chaos.worker import REPLY_LIMIT, PairKeys, Worker
from tests.cluster.harness import REPO, Cluster, wait_for
from weir.client.errors import ClientError
from weir.client.smp import SmpClient
from weir.crypto.keys import dh, generate
from weir.wire.address import SmpAddress
from weir.wire.errors import Simple
from weir.wire.smp.commands import KEY, NEW, SEND, MessagingReq
from weir.wire.smp.replies import ERR, IDS, OK

PAIRS = 4
_PAUSE = 0.05
_ENDLESS = 1_000_000


class QuietWorker(Worker):
    async def _send(self, pair: PairKeys) -> None:
        """Send one message after the other, and repeat each until it is confirmed."""
        n, a = self.state[str(pair.number)]
        client: SmpClient | None = None
        while n < self.total:
            await asyncio.sleep(_PAUSE)
            if client is None or client.closed.is_set():
                client = await self.connect(0)
            self.journal.write("T", pair.number, n, a)
            try:
                reply = await client.send(SEND(False, f"{n} {a} ".encode() + bytes(500)), pair.snd_id, pair.snd_key)
            except ClientError:
                client.connection.abort()
                client, a = None, a + 1
                continue
            if reply == OK():
                self.journal.write("O", pair.number, n, a)
                n, a = n + 1, 0
            else:
                self.journal.write("Q" if reply == ERR(Simple.QUOTA) else "U", pair.number, n, a)
                a += 1


async def make_pairs(address: str, count: int) -> list[dict[str, Any]]:
    parsed = SmpAddress.parse(address)
    assert parsed is not None
    made = []
    async with await SmpClient.connect(parsed, reply_timeout=REPLY_LIMIT) as client:
        for number in range(count):
            rcv_key, dh_key, snd_key = generate("x25519"), generate("x25519"), generate("x25519")
            ids = await client.send(NEW(rcv_key.spki, dh_key.public, None, False, MessagingReq()), b"", rcv_key)
            assert isinstance(ids, IDS), ids
            assert await client.send(KEY(snd_key.spki), ids.rcv_id, rcv_key) == OK()
            secret = dh(ids.dh_key, dh_key.private)
            made.append(PairKeys(number, ids.rcv_id, ids.snd_id, rcv_key, snd_key, secret).to_json())
    return made


class Traffic:
    """A context: inside it messages flow; `flows` says that they do, and at the end everything has arrived."""

    def __init__(self, cluster: Cluster, directory: Path, address: str) -> None:
        self._cluster = cluster
        self._directory = directory
        self._address = address
        self._workers: dict[str, subprocess.Popen[bytes]] = {}
        self.journal = Journal(directory)

    def __enter__(self) -> Traffic:
        line = (sys.executable, "-m", "tests.cluster.traffic", "pairs", self._address, str(PAIRS))
        pairs = json.loads(self._cluster.run(*line, inside=True))
        for kind in ("receive", "send"):
            order = {
                "kind": kind,
                "addresses": [self._address],
                "journal": str(self._directory / f"{kind}.journal"),
                "seed": 1,
                "total": _ENDLESS,
                "pairs": pairs,
                "state": {str(n): [0] if kind == "receive" else [0, 0] for n in range(PAIRS)},
            }
            with (self._directory / "traffic.log").open("ab") as log:
                process = subprocess.Popen(
                    self._cluster.command(sys.executable, "-m", "tests.cluster.traffic", "work"),
                    stdin=subprocess.PIPE,
                    stdout=log,
                    stderr=log,
                    cwd=REPO,
                    start_new_session=True,
                )
            assert process.stdin is not None
            process.stdin.write(json.dumps(order).encode() + b"\n")
            process.stdin.flush()
            self._workers[kind] = process
        self.flows()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            if kind is None:
                self.finish()
        finally:
            for process in self._workers.values():
                process.kill()
                process.wait()

    def flows(self, messages: int = 20, seconds: float = 60) -> None:
        """Every pair still delivers messages from here on."""
        self.journal.update()
        before = {n: len(pair.got) for n, pair in self.journal.pairs.items()}

        def on() -> bool:
            self._check()
            self.journal.update()
            return len(self.journal.pairs) == PAIRS and all(
                len(pair.got) >= before.get(n, 0) + messages / PAIRS for n, pair in self.journal.pairs.items()
            )

        wait_for(f"{messages} more messages", on, seconds)

    def _check(self) -> None:
        for kind, process in self._workers.items():
            assert process.poll() is None, f"{kind}: {(self._directory / 'traffic.log').read_text()[-3000:]}"

    def finish(self) -> None:
        """Stop sending. Every confirmed message must have arrived, once and in order."""
        sender = self._workers.pop("send", None)
        if sender is None:
            return
        sender.kill()
        sender.wait()

        def arrived() -> bool:
            self._check()
            self.journal.update()
            return self.journal.missing == 0

        wait_for("what was confirmed", arrived, 60)
        time.sleep(0.5)
        self.journal.update()
        assert self.journal.problems() == []

    def report(self) -> str:
        counts = self.journal.counts
        return (
            f"{self.journal.confirmed} messages confirmed in {counts['T']} attempts, {counts['U']} errors,"
            f" {counts['M']} deliveries over {counts['S']} subscriptions"
        )


async def _work() -> None:
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=1 << 22)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    order = json.loads(await reader.readline())
    worker = QuietWorker(order)
    await {"send": worker.send_all, "receive": worker.receive_all}[order["kind"]]()


if __name__ == "__main__":
    if sys.argv[1] == "pairs":
        print(json.dumps(asyncio.run(make_pairs(sys.argv[2], int(sys.argv[3])))))
    else:
        asyncio.run(_work())
