"""`weir up`: starts a complete router on one machine and supervises it.

The supervisor reserves the ports, starts Redis and then all edges at once, and prints the address when every edge
accepts clients. It restarts edges and the bundled Redis when they end. On Ctrl-C it stops the edges
first and Redis last.
"""

from __future__ import annotations

import asyncio
import os
import re
import signal
import sys
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from weir.cli.arguments import load_config, parser
from weir.cli.ed448 import ed448_warning
from weir.cli.errors import Fail
from weir.cli.up_edges import EdgeProcess
from weir.cli.up_home import Home
from weir.cli.up_redis import RedisProcess
from weir.cli.up_settings import EMBEDDED, Reserved, UpSettings
from weir.config.options import port, whole
from weir.router.config import SCHEMA

if TYPE_CHECKING:
    import argparse

    from weir.cli.traces import TraceViewer

_STOP_MARGIN = 10.0  # seconds that an edge has to end after [drain] grace


def main(argv: Sequence[str]) -> int:
    p = parser(
        "weir up",
        "Starts a complete router: Redis (the bundled one, or yours) and edges that share one port. The first start\n"
        "makes the identity. Identity, queues and messages are kept in --home and survive a restart.\n"
        "An edge that crashes is restarted, and so is the bundled Redis. Ctrl-C stops the router cleanly.\n"
        "Settings come from weir.toml in --home (`weir smp config list`). The options below win over that file.",
        """
weir up --home data --host 127.0.0.1                     # for this machine only
weir up --home /srv/weir --host smp.example.org --edges 4
weir up --home data --host smp.example.org --redis redis://redis.internal:6379/0
weir up --home data --host 127.0.0.1 --traces            # with traces in a browser
""",
    )
    p.add_argument("--home", type=Path, default=Path("data"), metavar="DIR", help="directory of the router (data)")
    p.add_argument("--host", metavar="H", help="host name in the address (127.0.0.1)")
    p.add_argument("--listen", metavar="ADDR", help="address to listen on (loopback for a loopback host, else all)")
    p.add_argument("--smp-port", type=port, metavar="P", help="port for clients (5223; 0: any free port)")
    p.add_argument("--http-port", type=port, metavar="Q", help="port of the web page (8000; 0: any free port)")
    p.add_argument("--metrics-port", type=port, metavar="M", help="port of /metrics (the one after the page's; 0: any)")
    p.add_argument("--edges", type=whole(1, 1000), default=2, metavar="N", help="number of edge processes (2)")
    p.add_argument("--redis", metavar="URL", help="URL of your Redis, or `embedded` for the bundled one (embedded)")
    p.add_argument("--ready-file", type=Path, metavar="F", help="write JSON to F when clients can connect")
    p.add_argument("--traces", action="store_true", help="trace everything and start a trace viewer (needs Java 17)")
    options = p.parse_args(argv)
    return asyncio.run(_Supervisor(options).run())


class _Supervisor:
    def __init__(self, options: argparse.Namespace) -> None:
        self._options = options
        self._home = Home(options.home)
        self._edges: list[EdgeProcess] = []
        self._redis: RedisProcess | None = None
        self._viewer: TraceViewer | None = None
        self._run: dict[str, Any] = {}
        self._drain_grace = 0.0

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
        processes: list[EdgeProcess | RedisProcess] = [*self._edges, *([self._redis] if self._redis else [])]
        watches = [asyncio.create_task(process.watch(_warn, self._write_run)) for process in processes]
        stopping = asyncio.create_task(stop.wait())
        done, _ = await asyncio.wait((stopping, *watches), return_when=asyncio.FIRST_COMPLETED)
        for task in (stopping, *watches):
            task.cancel()
        await asyncio.gather(stopping, *watches, return_exceptions=True)
        for task in done:
            task.result()

    async def _start(self) -> None:
        options, home = self._options, self._home
        home.open()
        config = load_config(home.config)
        self._drain_grace = config.drain.grace
        named = SCHEMA.given(home.config)
        settings = UpSettings.of(options, config, named)
        identity = home.ensure_identity(settings.hosts[0])
        reserved = settings.reserve()
        ports, http_port = reserved.smp, reserved.http
        redis_url = self._start_redis(config.redis.durability) if settings.redis == EMBEDDED else settings.redis
        if options.traces:
            from weir.cli.traces import TraceViewer

            self._viewer = await TraceViewer.start()
        if warning := ed448_warning(identity):
            _warn(warning)
        address = settings.address(identity.fingerprint, ports, config.auth.create_password)
        page = (
            None if http_port is None else f"http://{_reachable(settings.http_listen, settings.hosts[0])}:{http_port}/"
        )
        self._run = {
            "address": str(address),
            "host": settings.hosts[0],
            "smp_port": ports[0],
            "http": page,
            "metrics": _metrics_url(settings, reserved, page),
            "home": str(home.path.resolve()),
            "pid": os.getpid(),
            "redis": {"url": redis_url},
            "placement_key": str(home.placement_key.resolve()),
            "config": str(home.config.resolve()),
            "traces": self._viewer.url if self._viewer else None,
        }
        environment = self._environment(settings, named, reserved, redis_url)
        for number in range(options.edges):
            extra = {"WEIR_CONTROL_PORT": "0"} if number else {}
            self._edges.append(EdgeProcess(number, home.config.resolve(), {**environment, **extra}))
        starts = [asyncio.create_task(edge.start()) for edge in self._edges]
        try:
            await asyncio.gather(*starts)
        finally:
            for start in starts:
                start.cancel()
            await asyncio.gather(*starts, return_exceptions=True)
        for sock in reserved.held:
            sock.close()
        self._write_run()

    def _start_redis(self, durability: str) -> str:
        if durability == "replicated":
            raise Fail("durability = replicated needs a Redis with replicas: give its URL with --redis")
        self._redis = RedisProcess(self._home.redis, self._home.redis_socket(), durability)
        self._redis.start()
        return self._redis.url

    def _environment(
        self,
        settings: UpSettings,
        named: Collection[tuple[str, str]],
        ports: Reserved,
        redis_url: str,
    ) -> dict[str, str]:
        """Return the environment of the edges: settings that weir.toml does not hold, or that win over weir.toml."""
        home = self._home
        overrides = {
            "TRANSPORT_HOSTS": ",".join(settings.hosts),
            "TRANSPORT_LISTEN": settings.listen,
            "TRANSPORT_PORTS": ",".join(map(str, ports.smp)),
            "TRANSPORT_PUBLIC_PORT": str(settings.public_port),
            "TRANSPORT_IDENTITY": str(home.identity.resolve()),
            "REDIS_URL": redis_url,
            "REDIS_PLACEMENT_KEY": str(home.placement_key.resolve()),
            "HTTP_LISTEN": settings.http_listen,
            "HTTP_PORT": str(ports.http or 0),
            "HTTP_METRICS_PORT": str(ports.metrics or 0),
        }
        if settings.listen not in ("0.0.0.0", "::") and ("proxy", "allow_local_relays") not in named:
            overrides["PROXY_ALLOW_LOCAL_RELAYS"] = "on"  # relays of a loopback router are on loopback, too
        if ("telemetry", "log_level") not in named:
            overrides["TELEMETRY_LOG_LEVEL"] = "warning"
        if self._viewer:
            overrides |= {"TELEMETRY_TRACES": f"zipkin+{self._viewer.url}", "TELEMETRY_TRACE_SESSIONS": "all"}
        return dict(os.environ) | {f"WEIR_{name}": value for name, value in overrides.items()}

    def _write_run(self) -> None:
        self._run["edges"] = [edge.pid for edge in self._edges]
        self._run["redis"]["pid"] = self._redis.pid if self._redis else None
        self._home.write_run(self._run, self._options.ready_file)

    def _print_summary(self) -> None:
        run = self._run
        redis = "embedded" if self._redis else f"at {_without_password(run['redis']['url'])}"
        lines = [
            "",
            f"  address   {run['address']}",
            f"  page      {run['http'] or 'off'}",
            f"  metrics   {run['metrics'] or 'off'}",
            f"  data      {run['home']}",
            f"  edges     {len(self._edges)}, Redis {redis}",
        ]
        if self._viewer:
            lines.append(f"  traces    {self._viewer.url}/zipkin/")
        lines += ["  stop      Ctrl-C", ""]
        print("\n".join(lines), flush=True)

    async def _stop(self) -> None:
        await asyncio.gather(*(edge.suspend() for edge in self._edges))
        await asyncio.gather(*(edge.stop(self._drain_grace + _STOP_MARGIN) for edge in self._edges))
        if self._viewer:
            await self._viewer.stop()
        if self._redis:
            self._redis.stop()
        self._home.close(self._options.ready_file)


def _metrics_url(settings: UpSettings, ports: Reserved, page: str | None) -> str | None:
    if ports.metrics is not None:
        return f"http://{_reachable(settings.metrics_listen, settings.hosts[0])}:{ports.metrics}/metrics"
    return f"{page}metrics" if page and settings.metrics else None


def _reachable(listen: str, host: str) -> str:
    name = host if listen in ("0.0.0.0", "::") else listen
    return f"[{name}]" if ":" in name else name


def _without_password(url: str) -> str:
    return re.sub(r"//[^@/]*@", "//…@", url)


def _warn(text: str) -> None:
    print(f"weir up: {text}", file=sys.stderr, flush=True)
