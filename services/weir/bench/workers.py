"""Generator processes: each prepares its share, waits for the common start, works, and sends what it counted."""

import asyncio
import contextlib
import multiprocessing
import os
import time
import traceback
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

import uvloop

from weir.bench.target import BenchError

Body = Callable[["Worker", Any], Coroutine[Any, Any, Any]]


class Worker:
    """The process's end: `ready` with anything the coordinator should know, then the message that starts it."""

    def __init__(self, pipe: "Connection[Any, Any]") -> None:
        self._pipe = pipe

    async def ready(self, about: Any = None) -> Any:
        self._pipe.send(("ready", about))
        return await asyncio.to_thread(self._pipe.recv)


@dataclass
class Pool:
    """The coordinator's end."""

    pipes: "list[Connection[Any, Any]]"

    def gather(self) -> list[Any]:
        """One message of every process, in order."""
        return [_received(pipe) for pipe in self.pipes]

    def ask(self, place: int, message: Any) -> Any:
        """Start one process alone, and wait for what it has to say."""
        self.pipes[place].send(message)
        return _received(self.pipes[place])

    def tell(self, message: Any) -> None:
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
    """One process per share. They end with the block."""
    context = multiprocessing.get_context("spawn")
    processes, pipes = [], []
    try:
        for share in shares:
            ours, theirs = context.Pipe()
            process = context.Process(target=_main, args=(theirs, body, share), daemon=True)
            process.start()
            theirs.close()
            processes.append(process)
            pipes.append(ours)
        yield Pool(pipes)
    finally:
        for pipe in pipes:
            pipe.close()
        for process in processes:
            process.join(5)
            if process.is_alive():
                process.terminate()
                process.join()


def _main(pipe: "Connection[Any, Any]", body: Body, share: Any) -> None:
    with contextlib.suppress(OSError, EOFError, KeyboardInterrupt):
        try:
            result = ("done", uvloop.run(body(Worker(pipe), share)))
        except BenchError as error:
            result = ("failed", str(error))
        except Exception:
            result = ("failed", "a generator process failed:\n" + traceback.format_exc())
        pipe.send(result)


def split(count: int, parts: int) -> list[int]:
    """`count` as evenly as can be."""
    return [count // parts + (number < count % parts) for number in range(parts)]


def default_processes(wanted: int) -> int:
    """As many as there are cores, but no more than there is work for."""
    return max(1, min(wanted, os.cpu_count() or 1))


async def sleep_until(moment: float) -> None:
    await asyncio.sleep(max(0.0, moment - time.monotonic()))
