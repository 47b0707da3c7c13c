"""Rollups: an edge publishes a record of each interval, and keeps none about a command, a queue or a client.

    counters, histograms ──increase since the last record──► record ──► pending ──► stream in Redis
    gauges ───────────────────────────────────────────────────┘            │ (bounded)
                                                                           └── not confirmed: sent again later

Intervals end at whole multiples on the clock, so that the minutes of all edges are the same. A record gets its sequence
number when its interval ends, and keeps it however often it is sent. A crash loses the present interval, and a clean
stop publishes it. While Redis is away or full, records wait. When too many wait, the oldest is dropped, and the gap in
the sequence numbers shows it.

What the source needs from Redis (numbers of the fleet, labels of services) is fetched between two records. So a Redis
that is slow delays no record.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import deque
from time import monotonic, process_time_ns, time
from typing import Final

from weir.redis.errors import Unavailable
from weir.runtime.rollup_source import Source
from weir.runtime.settings import Rollups as Settings
from weir.runtime.state.rollups import RollupStream
from weir.runtime.supervisor import Supervisor
from weir.runtime.totals import NOTHING
from weir.telemetry.errors import log_mistake
from weir.telemetry.rollups.record import Rollup, encode

_log = logging.getLogger(__name__)

MOST_PENDING: Final = 1440  # records: a day of minutes, less than 3 MB
_TOGETHER: Final = 64  # records of one write
_RETRY: Final = 5.0  # seconds
_CLOSE: Final = 2.0  # seconds that an edge which stops waits for Redis
_BEAT: Final = 0.1  # seconds between two looks at the delay of the event loop


class Rollups:
    def __init__(self, settings: Settings, edge: str, stream: RollupStream, source: Source) -> None:
        self._settings = settings
        self._edge = edge
        self._stream = stream
        self._source = source
        self._router = settings.router or source.program
        self._sequence = 0
        self._totals = NOTHING
        self._fleet: dict[str, int] = {}
        self._pending: deque[bytes] = deque(maxlen=MOST_PENDING)
        self._sending = asyncio.Lock()
        self._recorded = asyncio.Event()
        self._start, self._started, self._cpu = time(), monotonic(), process_time_ns()
        self._loop = asyncio.get_running_loop()
        self._beat: asyncio.TimerHandle | None = None
        self._due = 0.0
        self._longest_delay = 0.0

    @property
    def pending(self) -> int:
        """Records that Redis has not confirmed."""
        return len(self._pending)

    def start(self, background: Supervisor) -> None:
        if self._settings.interval:
            self._next_beat()
            background.run("the rollups", self._record_intervals)
            background.run("the publishing of rollups", self._publish)

    async def close(self) -> None:
        """Publish the last part of an interval, and what was not published before."""
        if self._beat is None:
            return
        self._beat.cancel()
        self._beat = None
        try:
            self._record()
        except Exception as error:
            log_mistake(_log, "the last rollup could not be made", error)
        if self._stream.connected:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_CLOSE):
                    await self._send()

    # Recording.

    async def _record_intervals(self) -> None:
        interval = self._settings.interval
        while True:
            due = (time() // interval + 1) * interval
            while 0 < (left := due - time()) <= interval:  # a timer may be early; a clock that is set ends the interval
                await asyncio.sleep(left)
            self._record()
            self._recorded.set()

    def _record(self) -> None:
        """Make the record of the interval that ends now. All its numbers are of the same moment."""
        now, at, cpu = time(), monotonic(), process_time_ns()
        totals, services = self._source.totals(), self._source.take_services()
        more = totals.since(self._totals)
        gauges = self._source.gauges() | self._fleet
        gauges["cpu_us"] = (cpu - self._cpu) // 1000
        gauges["loop_delay_max_us"] = round(self._longest_delay * 1e6)
        self._sequence += 1
        rollup = Rollup(
            self._router,
            self._source.program,
            self._edge,
            self._sequence,
            int(self._start * 1000),
            round((at - self._started) * 1000),
            more.commands,
            more.events,
            gauges,
            more.histograms,
            services,
        )
        self._totals = totals
        self._start, self._started, self._cpu, self._longest_delay = now, at, cpu, 0.0
        self._pending.append(encode(rollup))

    def _next_beat(self) -> None:
        self._due = monotonic() + _BEAT
        self._beat = self._loop.call_later(_BEAT, self._measure_delay)

    def _measure_delay(self) -> None:
        self._longest_delay = max(self._longest_delay, monotonic() - self._due)
        self._next_beat()

    # Publishing.

    async def _publish(self) -> None:
        await self._refresh()
        while True:
            if self._pending:
                await self._wait(min(_RETRY, self._settings.interval))
            else:
                await self._recorded.wait()
            self._recorded.clear()
            await self._send()
            await self._refresh()

    async def _wait(self, seconds: float) -> None:
        """Wait before records are sent again, but no longer than until the next record."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._recorded.wait()

    async def _send(self) -> None:
        """Send what is pending, until Redis does not confirm something."""
        async with self._sending:
            while self._pending:
                some = [self._pending[n] for n in range(min(_TOGETHER, len(self._pending)))]
                left = await self._stream.append(some, self._settings.keep)
                # More records may have come meanwhile, and pushed the oldest out.
                confirmed = set(some).difference(left)
                self._pending = deque((r for r in self._pending if r not in confirmed), MOST_PENDING)
                if left:
                    return

    async def _refresh(self) -> None:
        try:
            self._fleet = await self._source.refresh()
        except Unavailable:
            self._fleet = {}  # numbers that are old would look like present ones
