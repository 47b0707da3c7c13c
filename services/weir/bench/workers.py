"""Generator processes and their coordinator.

generator                              coordinator
prepare its share, report() ─────────► gather()
wait              ◄─────────────────── start_all() or run_one()
work, report() or return ────────────► gather()
delete what it created ◄────────────── the end of `with pool(…)`

A generator deletes its queues after the measurement, so that nobody measures that. It also does so when the bench fails
or is interrupted: the coordinator then sends SIGTERM, which cancels the generator's work. Generators ignore SIGINT,
because Ctrl-C reaches them and the coordinator alike.
"""

import asyncio
import contextlib
import multiprocessing
import os
import signal
import time
import traceback
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from typing import Any

import uvloop

from weir.bench.created import Created
from weir.bench.system import Spent, spent, usage
from weir.bench.target import BenchError, Target

Body = Callable[["Worker", Any], Coroutine[Any, Any, Any]]


class Worker:
    """The generator's end of the pipe to the coordinator."""

    def __init__(self, pipe: "Connection[Any, Any]") -> None:
        self._pipe = pipe
        self._after = contextlib.AsyncExitStack()

    def creates(self, target: Target) -> Created:
        """Return the creator of queues, which deletes them after the measurement."""
        created = Created(target)
        self._after.push_async_exit(created)
        return created

    async def run(self, body: Body, share: Any) -> None:
        """Run the body, send its result, and clean up when the coordinator has ended the measurement."""
        work = asyncio.current_task()
        assert work is not None
        measuring = True

        def end() -> None:
            if measuring:  # nothing interrupts the deletion
                work.cancel()

        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, end)
        async with self._after:
            try:
                self._pipe.send(("done", await body(self, share)))
                with contextlib.suppress(EOFError):
                    await asyncio.to_thread(self._pipe.recv)
            finally:
                measuring = False

    async def report(self, value: Any = None) -> Any:
        """Send a value to the coordinator, then wait for the coordinator's message and return it."""
        self._pipe.send(("ready", value))
        return await asyncio.to_thread(self._pipe.recv)


@dataclass
class Pool:
    """The coordinator's ends of the pipes to all generators."""

    pipes: "list[Connection[Any, Any]]"

    def gather(self) -> list[Any]:
        """Wait for one value from every generator. Return the values in order."""
        return [_received(pipe) for pipe in self.pipes]

    def run_one(self, place: int, message: Any) -> Any:
        """Send a message to one generator alone, and wait for the value that it reports."""
        self.pipes[place].send(message)
        return _received(self.pipes[place])

    def start_all(self, message: Any) -> None:
        """Send a message to every generator."""
        for pipe in self.pipes:
            pipe.send(message)


def _received(pipe: "Connection[Any, Any]") -> Any:
    try:
        kind, value = pipe.recv()
    except EOFError:
        raise BenchError("a generator process died") from None
    if kind == "failed":
        raise BenchError(value)
    return value


@contextlib.contextmanager
def pool(body: Body, shares: list[Any]) -> Iterator[Pool]:
    """Run one process per share during the `with` block."""
    context = multiprocessing.get_context("spawn")
    processes: list[SpawnProcess] = []
    pipes: list[Connection[Any, Any]] = []
    ended = False
    try:
        for share in shares:
            ours, theirs = context.Pipe()
            process = context.Process(target=_main, args=(theirs, body, share), daemon=True)
            process.start()
            theirs.close()
            processes.append(process)
            pipes.append(ours)
        yield Pool(pipes)
        ended = True
    except BaseException:
        for process in processes:
            process.terminate()
        raise
    finally:
        for pipe in pipes:
            pipe.close()
        try:
            _join(processes, interruptible=not ended)
        finally:  # interrupted again
            for process in processes:
                process.kill()


def _join(processes: list[SpawnProcess], *, interruptible: bool) -> None:
    """Wait until all processes have ended. If not `interruptible`, the first Ctrl-C is raised only then."""
    try:
        for process in processes:
            process.join()
    except KeyboardInterrupt:
        if not interruptible:
            _join(processes, interruptible=True)
        raise


def _main(pipe: "Connection[Any, Any]", body: Body, share: Any) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with contextlib.suppress(OSError, EOFError, asyncio.CancelledError):
        try:
            uvloop.run(Worker(pipe).run(body, share))
        except BenchError as error:
            pipe.send(("failed", str(error)))
        except Exception:
            pipe.send(("failed", "a generator process failed:\n" + traceback.format_exc()))


def split(count: int, parts: int) -> list[int]:
    """Split `count` into parts that differ by at most one."""
    return [count // parts + (number < count % parts) for number in range(parts)]


def default_processes(wanted: int) -> int:
    """One process per core, but not more than `wanted`."""
    return max(1, min(wanted, os.cpu_count() or 1))


def measure_window(workers: Pool, target: Target, warmup: float, seconds: float) -> Spent:
    """Start all generators. After the warm-up, measure what the router uses in `seconds`.

    The generators get the begin and the end of the window.
    """
    begin = time.monotonic() + 0.2 + warmup
    workers.start_all((begin, begin + seconds))
    time.sleep(max(0.0, begin - time.monotonic()))
    before = usage(target.pids, target.redis_url)
    time.sleep(max(0.0, begin + seconds - time.monotonic()))
    return spent(before, usage(target.pids, target.redis_url))


async def sleep_until(moment: float) -> None:
    await asyncio.sleep(max(0.0, moment - time.monotonic()))
