"""The edge processes of `weir up`. An edge is restarted when it ends, until the router stops.

An edge reports in lines of JSON through a pipe. The first report says that the edge is ready. The second one answers
SIGUSR1 and says that the edge accepts no more clients. The supervisor waits for the second report of every edge before
it sends SIGTERM to any: a client that one edge disconnects would otherwise connect to another edge that is about to
stop, and be disconnected again.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import json
import os
import signal
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from weir.cli.errors import Fail
from weir.cli.programs import SMP, Program

_START_LIMIT = 20.0
_SUSPEND_LIMIT = 5.0  # seconds; an edge that needs longer is stopped all the same
_PAUSE_FIRST, _PAUSE_MOST = 0.5, 10.0
_PR_SET_PDEATHSIG = 1


class EdgeProcess:
    """One edge, whose process may change through restarts."""

    def __init__(self, program: Program, number: int, config: Path, environment: Mapping[str, str]) -> None:
        self._program = program
        self.number = number
        self.pid = 0
        self._config = config
        self._environment = dict(environment)
        self._process: asyncio.subprocess.Process | None = None
        self._reports: _Reports | None = None
        self._ready = False

    @property
    def _name(self) -> str:
        return f"edge {self.number}" if self._program is SMP else f"{self._program.name} edge {self.number}"

    async def start(self) -> None:
        """Return when clients can connect. Raises Fail with the edge's own message if the edge cannot start."""
        self._close_reports()
        read, write = os.pipe()
        try:
            self._process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-P",  # import nothing from the working directory
                "-m",
                "weir.cli.main",
                self._program.name,
                "edge",
                "--config",
                str(self._config),
                "--ready-fd",
                str(write),
                env=self._environment,
                pass_fds=(write,),
                stdin=asyncio.subprocess.DEVNULL,
                start_new_session=True,  # Ctrl-C is for the supervisor, which stops the edges in order
                preexec_fn=_die_with_parent,
            )
        finally:
            os.close(write)
        self.pid = self._process.pid
        self._reports = reports = await _Reports.open(read)
        try:
            async with asyncio.timeout(_START_LIMIT):
                report = await reports.next()
        except TimeoutError:
            report = {"error": f"{self._name} is not ready after {_START_LIMIT:.0f} s"}
        if "error" in report:
            await self.stop(0)
            raise Fail(str(report["error"]))
        self._ready = True

    async def watch(self, warn: Callable[[str], None], on_restart: Callable[[], None]) -> None:
        """Restart the edge whenever it ends, until cancelled. The pause between two attempts doubles up to a limit."""
        pause = _PAUSE_FIRST
        while self._process is not None:
            code = await self._process.wait()
            warn(f"{self._name} ended with {_describe(code)}; restarting it")
            while True:
                await asyncio.sleep(pause)
                pause = min(pause * 2, _PAUSE_MOST)
                try:
                    await self.start()
                except (Fail, OSError) as failure:  # OSError: no process can be started now
                    warn(f"{self._name} does not start: {failure}")
                    continue
                pause = _PAUSE_FIRST
                try:
                    on_restart()
                except Fail as failure:
                    warn(str(failure))
                break

    async def suspend(self) -> None:
        """Return when the edge accepts no more clients. Those connected stay."""
        process, reports = self._process, self._reports
        if process is None or process.returncode is not None or reports is None or not self._ready:
            return
        process.send_signal(signal.SIGUSR1)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_SUSPEND_LIMIT):
                await reports.next()

    async def stop(self, grace: float) -> None:
        """Send SIGTERM, and SIGKILL after `grace` seconds."""
        self._close_reports()
        process, self._process = self._process, None
        if process is None or process.returncode is not None:
            return
        process.send_signal(signal.SIGTERM if grace else signal.SIGKILL)
        try:
            async with asyncio.timeout(grace or None):
                await process.wait()
        except TimeoutError:
            process.kill()
            await process.wait()

    def _close_reports(self) -> None:
        self._ready = False
        reports, self._reports = self._reports, None
        if reports is not None:
            reports.close()


def _die_with_parent() -> None:
    """Make the kernel end this edge when the supervisor dies, even by kill -9."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


class _Reports:
    """The reading end of an edge's pipe."""

    def __init__(self, reader: asyncio.StreamReader, transport: asyncio.ReadTransport) -> None:
        self._reader = reader
        self._transport = transport

    @staticmethod
    async def open(descriptor: int) -> _Reports:
        reader = asyncio.StreamReader()
        pipe = os.fdopen(descriptor, "rb", 0)
        transport, _ = await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), pipe
        )
        return _Reports(reader, transport)

    async def next(self) -> dict[str, object]:
        line = await self._reader.readline()
        if not line:
            return {"error": "the edge ended before it was ready; its output is above"}
        report: dict[str, object] = json.loads(line)
        return report

    def close(self) -> None:
        self._transport.close()


def _describe(code: int) -> str:
    return f"signal {signal.Signals(-code).name}" if code < 0 else f"code {code}"
