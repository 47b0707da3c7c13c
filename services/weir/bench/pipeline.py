"""`weir bench pipeline`: a day of records of many edges through `weir pipeline ingest` and `weir pipeline tables`.

The bench fills the stream of a Redis of its own with records made by the product's encoder, and runs the two commands
as an operator does, each in a process of its own with two cores. It does so for a tenth of the edges and for all. CPU
time is that of all processes of a command, with Spark's JVM; memory is the highest sum of their resident memory.
"""

import gzip
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any, Final

import redis

from weir.bench.bars import Show, show_bars
from weir.bench.system import rss_bytes
from weir.bench.target import BenchError
from weir.redis.embedded import start_embedded
from weir.redis.partitions import Partitions
from weir.runtime.state.keys import CommonKeys
from weir.runtime.state.rollups import FIELD
from weir.telemetry.rollups.histogram import bucket
from weir.telemetry.rollups.record import Rollup, ServiceRollup, decode, encode

_MINUTES: Final = 1440
_SHARE: Final = 10
_KINDS: Final = 40  # different records, which edges repeat under their own names
_PAGE: Final = 5000
_SAMPLE: Final = 0.5
_WITH_SERVICES: Final = 20  # every 20th edge has sessions of services


@dataclass(frozen=True)
class Run:
    """The CPU time and memory of a command."""

    wall_s: float
    cpu_s: float
    peak_mib: float


@dataclass(frozen=True)
class PipelineResult:
    records: int
    input_s: float
    records_per_cpu_s: float
    """Through both commands."""
    ingest_s: float
    ingest_cpu_s: float
    ingest_peak_mib: float
    tables_s: float
    tables_cpu_s: float
    tables_peak_mib: float
    again_s: float
    """Both commands once more, without new input."""
    again_cpu_s: float


def run_pipeline(edges: int, show: Show) -> dict[str, Any]:
    small = run_day(max(1, edges // _SHARE), lambda text: None)
    few = show(f"{small.records:,} records", asdict(small))
    large = run_day(edges, lambda text: print(text, flush=True))
    many = show(f"{large.records:,} records", asdict(large))
    times = large.records / small.records
    bars: dict[str, tuple[float, str, float]] = {
        f"CPU time of {times:.0f} times as many records": (_cpu(large) / _cpu(small), "<=", 1.1 * times),
        f"memory of {times:.0f} times as many records": (_peak(large) / _peak(small), "<=", 1.3),
        "CPU time of a second run, of the first": (large.again_cpu_s / _cpu(large), "<=", 0.05),
    }
    return {"few": few, "many": many, "bars": show_bars(bars, show)}


def _cpu(result: PipelineResult) -> float:
    return result.ingest_cpu_s + result.tables_cpu_s


def _peak(result: PipelineResult) -> float:
    return max(result.ingest_peak_mib, result.tables_peak_mib)


def run_day(edges: int, say: Callable[[str], None]) -> PipelineResult:
    with tempfile.TemporaryDirectory(prefix="weir-bench-") as directory:
        home = Path(directory)
        server = start_embedded(home / "redis")
        try:
            began = time.monotonic()
            records = _fill(server.url, edges, say)
            input_s = time.monotonic() - began
            ingest = ["ingest", "--once", "--redis", server.url, "--tables", str(home / "tables")]
            tables = ["tables", "--tables", str(home / "tables")]
            first = [_command(each, say) for each in (ingest, tables)]
            again = [_command(each, say) for each in (ingest, tables)]
        finally:
            server.stop()
    cpu = sum(each.cpu_s for each in first)
    return PipelineResult(
        *(records, input_s, records / cpu),
        *(first[0].wall_s, first[0].cpu_s, first[0].peak_mib),
        *(first[1].wall_s, first[1].cpu_s, first[1].peak_mib),
        *(sum(each.wall_s for each in again), sum(each.cpu_s for each in again)),
    )


def _fill(url: str, edges: int, say: Callable[[str], None]) -> int:
    """Put yesterday's records into the stream, minute by minute, as a fleet does."""
    start = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0) - timedelta(days=1)
    key = CommonKeys(Partitions("")).rollups
    kinds = list(_kinds())
    plain = [_Form(replace(kind, services=())) for kind in kinds]
    with_services = [_Form(kind) for kind in kinds]
    with redis.Redis.from_url(url) as client:
        waiting = client.pipeline(transaction=False)
        for minute in range(_MINUTES):
            at = round(start.timestamp() * 1000) + minute * 60_000
            for edge in range(edges):
                forms = plain if edge % _WITH_SERVICES else with_services
                form = forms[(minute * 7 + edge) % len(forms)]
                waiting.xadd(key, {FIELD: form.record(f"edge{edge}", minute + 1, at)})
                if len(waiting) >= _PAGE:
                    waiting.execute()
            if minute % 144 == 143:
                say(f"input: {(minute + 1) * edges:,} records")
        waiting.execute()
    return _MINUTES * edges


class _Form:
    """Records that differ in edge, sequence and start alone. The encoder takes ten times as long for each."""

    def __init__(self, kind: Rollup) -> None:
        blank = replace(kind, edge="EDGE", sequence=987_654_321, start=1_234_567_654_321)
        self._text = gzip.decompress(encode(blank)).decode().replace("%", "%%")
        for value, hole in (('"EDGE"', '"%(edge)s"'), ("987654321", "%(sequence)d"), ("1234567654321", "%(start)d")):
            self._text = self._text.replace(value, hole)
        same = replace(kind, edge="edge1", sequence=2, start=3)
        if decode(self.record("edge1", 2, 3)) != same:
            raise BenchError("records of this form are not those of the encoder")

    def record(self, edge: str, sequence: int, start: int) -> bytes:
        text = self._text % {"edge": edge, "sequence": sequence, "start": start}
        return gzip.compress(text.encode(), 1)


def _kinds() -> Iterator[Rollup]:
    """Records of a busy edge, with what each kind of traffic leaves in them."""
    rng = Random(1)
    for _ in range(_KINDS):
        sent = rng.randrange(200, 2000)
        events = {"msgSent": sent, "msgRecv": sent - 5, "msgSentNtf": sent // 3, "msgNtfs": sent // 4, "qSub": 90}
        events |= {"qCreated": 12, "qSecured": 11, "qDeletedAll": 7, "qSubAllB": 40, "ntfCreated": 5, "ntfSub": 9}
        events |= {"pMsgFwds_pRequests": sent // 5, "pMsgFwds_pSuccesses": sent // 5, "pMsgFwdsRecv": sent // 5}
        commands = {"SEND.OK": sent, "SEND.QUOTA": 3, "SEND.AUTH": 2, "ACK.OK": sent - 5, "SUB.OK": 300, "NEW.OK": 12}
        commands |= {"KEY.OK": 11, "DEL.OK": 7, "NKEY.OK": 5, "PING.OK": 900, "PFWD.OK": sent // 5, "GET.OK": 20}
        gauges = {"connections": 1500 + rng.randrange(90), "subscriptions": 60_000, "rss_bytes": 180 << 20}
        gauges |= {"cpu_us": sent * 900, "loop_delay_max_us": rng.randrange(900, 20_000), "outgoing_bytes": 5 << 20}
        gauges |= {"fleet_queues": 4_000_000, "fleet_messages": 90_000, "redis_used_bytes": 3 << 30}
        gauges |= {f"fleet_active_queues_{period}": 10**6 + sent for period in ("day", "week", "month")}
        values = {"send_stored": 900.0, "send_msg": 2500.0, "msg_ack": 60_000.0, "redis_rtt": 400.0}
        histograms = {name: _histogram(rng, 400, typical) for name, typical in values.items()}
        services = (ServiceRollup("desk", "messages", 1, 90_000, {"ok": 1}, sent, _histogram(rng, 3, 5e5)),)
        yield Rollup(*("bench", "smp", "edge", 1, 0, 60_000), commands, events, gauges, histograms, services)


def _histogram(rng: Random, count: int, typical: float) -> dict[int, int]:
    counts: dict[int, int] = {}
    for _ in range(count):
        index = bucket(rng.lognormvariate(0, 0.7) * typical)
        counts[index] = counts.get(index, 0) + 1
    return counts


def _command(arguments: Sequence[str], say: Callable[[str], None]) -> Run:
    began = time.monotonic()
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", "weir.cli.main", "pipeline", *arguments],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    peak = _Peak(process.pid)
    assert process.stderr is not None
    error = process.stderr.read()
    _, status, used = os.wait4(process.pid, 0)  # with the processes that the command has waited for
    process.returncode = os.waitstatus_to_exitcode(status)
    highest = peak.stop()
    if process.returncode:
        raise BenchError(f"weir pipeline {arguments[0]}: {error.strip() or f'exit code {process.returncode}'}")
    run = Run(time.monotonic() - began, used.ru_utime + used.ru_stime, highest / 2**20)
    say(f"{arguments[0]}: {run.wall_s:.0f} s, CPU {run.cpu_s:.0f} s, {run.peak_mib:.0f} MiB")
    return run


class _Peak:
    """Samples the resident memory of a process and all below it."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._highest = 0
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._sample, daemon=True)
        self._thread.start()

    def _sample(self) -> None:
        while not self._ended.wait(_SAMPLE):
            self._highest = max(self._highest, sum(map(rss_bytes, _tree(self._pid))))

    def stop(self) -> int:
        self._ended.set()
        self._thread.join()
        return self._highest


def _tree(pid: int) -> Iterator[int]:
    yield pid
    for children in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            found = children.read_text().split()
        except OSError:
            continue
        for child in found:
            yield from _tree(int(child))
