"""The supervisor of `weir up` and `weir ntf up`: routers on one machine, with one Redis.

The supervisor reserves the ports, starts Redis and then all edges at once, and prints the addresses when every edge
accepts clients. It restarts edges and the bundled Redis when they end. On Ctrl-C it stops the edges first and Redis
last.
"""

from __future__ import annotations

import asyncio
import os
import re
import signal
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from weir.cli.errors import Fail
from weir.cli.up_edges import EdgeProcess
from weir.cli.up_redis import RedisProcess
from weir.cli.up_router import UpRouter
from weir.cli.up_settings import EMBEDDED

if TYPE_CHECKING:
    import argparse

    from weir.cli.traces import TraceViewer


class Supervisor:
    """The first router's home holds Redis and run.json."""

    def __init__(self, command: str, options: argparse.Namespace, routers: Sequence[UpRouter]) -> None:
        self._command = command
        self._options = options
        self._routers = routers
        self._home = routers[0].home
        self._redis: RedisProcess | None = None
        self._viewer: TraceViewer | None = None
        self._run: dict[str, Any] = {}

    async def run(self) -> int:
        stop = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, stop.set)
        try:
            await self._start()
            self._print_summary()
            await self._watch_until(stop)
            if sys.stdout.isatty():
                print()
            print("stopping", flush=True)
        finally:
            await self._stop()
        return 0

    async def _watch_until(self, stop: asyncio.Event) -> None:
        """Restart what ends. A watch that fails ends the router, because nothing would be restarted any more."""
        processes: list[EdgeProcess | RedisProcess] = [edge for router in self._routers for edge in router.edges]
        processes += [self._redis] if self._redis else []
        watches = [asyncio.create_task(process.watch(self._warn, self._write_run)) for process in processes]
        stopping = asyncio.create_task(stop.wait())
        done, _ = await asyncio.wait((stopping, *watches), return_when=asyncio.FIRST_COMPLETED)
        for task in (stopping, *watches):
            task.cancel()
        await asyncio.gather(stopping, *watches, return_exceptions=True)
        for task in done:
            task.result()

    async def _start(self) -> None:
        first = self._routers[0]
        for router in self._routers:
            router.open()
        redis_url = self._start_redis(first) if first.settings.redis == EMBEDDED else first.settings.redis
        if self._options.traces:
            from weir.cli.traces import TraceViewer

            self._viewer = await TraceViewer.start()
        traces = self._viewer.url if self._viewer else None
        starts = [asyncio.create_task(router.start(redis_url, traces, self._warn)) for router in self._routers]
        try:
            await asyncio.gather(*starts)
        finally:
            for start in starts:
                start.cancel()
            await asyncio.gather(*starts, return_exceptions=True)
        self._run = {
            **first.run,
            "pid": os.getpid(),
            "redis": {"url": redis_url},
            "traces": traces,
            **{router.program.name: router.run for router in self._routers[1:]},
        }
        self._write_run()

    def _start_redis(self, router: UpRouter) -> str:
        if router.durability == "replicated":
            raise Fail("durability = replicated needs a Redis with replicas: give its URL with --redis")
        self._redis = RedisProcess(self._home.redis, self._home.redis_socket(), router.durability)
        self._redis.start()
        return self._redis.url

    def _write_run(self) -> None:
        for router in self._routers:
            router.run["edges"] = [edge.pid for edge in router.edges]
        self._run["edges"] = self._routers[0].run["edges"]
        self._run["redis"]["pid"] = self._redis.pid if self._redis else None
        self._home.write_run(self._run, self._options.ready_file)

    def _print_summary(self) -> None:
        run = self._run
        redis = "embedded" if self._redis else f"at {_without_password(run['redis']['url'])}"
        lines = [""]
        for router in self._routers:
            lines += [
                f"  address   {router.run['address']}",
                f"  page      {router.run['http'] or 'off'}",
                f"  metrics   {router.run['metrics'] or 'off'}",
                f"  data      {router.run['home']}",
                f"  edges     {len(router.edges)}, Redis {redis}",
                "",
            ]
        if self._viewer:
            lines[-1:] = [f"  traces    {self._viewer.url}/zipkin/", ""]
        lines[-1:] = ["  stop      Ctrl-C", ""]
        print("\n".join(lines), flush=True)

    async def _stop(self) -> None:
        await asyncio.gather(*(router.suspend() for router in self._routers))
        await asyncio.gather(*(router.stop() for router in self._routers))
        if self._viewer:
            await self._viewer.stop()
        if self._redis:
            self._redis.stop()
        for router in self._routers:
            router.home.close(self._options.ready_file if router.home is self._home else None)

    def _warn(self, text: str) -> None:
        print(f"{self._command}: {text}", file=sys.stderr, flush=True)


def _without_password(url: str) -> str:
    return re.sub(r"//[^@/]*@", "//…@", url)
