"""One router of `weir up`: its home directory, its ports and its edges."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Any

from weir.cli.arguments import load_config
from weir.cli.ed448 import ed448_warning
from weir.cli.errors import Fail, os_error
from weir.cli.programs import NTF, Program
from weir.cli.up_edges import EdgeProcess
from weir.cli.up_home import Home
from weir.cli.up_settings import Reserved, UpSettings

if TYPE_CHECKING:
    import argparse

_STOP_MARGIN = 10.0  # seconds that an edge has to end after [drain] grace


class UpRouter:
    """`open` it, `start` its edges, then `stop` and `close` it."""

    def __init__(self, program: Program, home: Home, options: argparse.Namespace) -> None:
        self.program = program
        self.home = home
        self.edges: list[EdgeProcess] = []
        self.run: dict[str, Any] = {}
        """The part of run.json that is about this router."""
        self._options = options
        self._drain_grace = 0.0

    def open(self) -> None:
        """Lock the home, read the settings and reserve the ports."""
        self.home.open()
        self._config = load_config(self.program, self.home.config)
        self._drain_grace = self._config.drain.grace
        self._named = self.program.schema.given(self.home.config)
        self.settings = UpSettings.of(self.program, self._options, self._config, self._named)
        self._identity = self.home.ensure_identity(self.settings.hosts[0])
        self._reserved = self.settings.reserve()

    @property
    def durability(self) -> str:
        durability: str = self._config.redis.durability
        return durability

    async def start(self, redis_url: str, traces: str | None, warn: Callable[[str], None]) -> None:
        """Return when clients can connect to every edge."""
        if warning := ed448_warning(self._identity):
            warn(warning)
        self.run = self._describe()
        environment = self._environment(redis_url, traces)
        for number in range(self._options.edges):
            extra = {"WEIR_CONTROL_PORT": "0"} if number else {}
            config = self.home.config.resolve()
            self.edges.append(EdgeProcess(self.program, number, config, {**environment, **extra}))
        starts = [asyncio.create_task(edge.start()) for edge in self.edges]
        try:
            await asyncio.gather(*starts)
        finally:
            for start in starts:
                start.cancel()
            await asyncio.gather(*starts, return_exceptions=True)
        for sock in self._reserved.held:
            sock.close()

    def _describe(self) -> dict[str, Any]:
        settings, reserved, home = self.settings, self._reserved, self.home
        http = reserved.http
        page = None if http is None else f"http://{_reachable(settings.http_listen, settings.hosts[0])}:{http}/"
        password = getattr(self._config.auth, "create_password", None)
        return {
            "address": f"{settings.address(self._identity.fingerprint, reserved.ports, password)}{self._query()}",
            "host": settings.hosts[0],
            f"{self.program.name}_port": reserved.ports[0],
            "http": page,
            "metrics": _metrics_url(settings, reserved, page),
            "home": str(home.path.resolve()),
            "placement_key": str(home.placement_key.resolve()),
            "config": str(home.config.resolve()),
        }

    def _query(self) -> str:
        """The query of a notification router's address."""
        if self.program is not NTF:
            return ""
        from weir.crypto.p256 import load_key
        from weir.crypto.pem import UnusableFile
        from weir.notifier.address import vapid_query

        path = self._config.web_push.vapid_key or self.home.vapid_key
        try:
            return vapid_query(load_key(path))
        except UnusableFile as error:
            raise Fail(str(error)) from None
        except OSError as error:
            raise os_error(path, error) from None

    def _environment(self, redis_url: str, traces: str | None) -> dict[str, str]:
        """Return the environment of the edges: settings that weir.toml does not hold, or that win over weir.toml."""
        home, settings, ports = self.home, self.settings, self._reserved
        overrides = {
            "TRANSPORT_HOSTS": ",".join(settings.hosts),
            "TRANSPORT_LISTEN": settings.listen,
            "TRANSPORT_PORTS": ",".join(map(str, ports.ports)),
            "TRANSPORT_PUBLIC_PORT": str(settings.public_port),
            "TRANSPORT_IDENTITY": str(home.identity.resolve()),
            "REDIS_URL": redis_url,
            "REDIS_PLACEMENT_KEY": str(home.placement_key.resolve()),
            "HTTP_LISTEN": settings.http_listen,
            "HTTP_PORT": str(ports.http or 0),
            "HTTP_METRICS_PORT": str(ports.metrics or 0),
        }
        if self.program is NTF:
            overrides["REDIS_STORAGE_KEY"] = str(home.storage_key.resolve())
            if ("web_push", "vapid_key") not in self._named:
                overrides["WEB_PUSH_VAPID_KEY"] = str(home.vapid_key.resolve())
        if settings.listen not in ("0.0.0.0", "::"):  # other routers of a loopback router are on loopback, too
            overrides |= _allow_local(self.program, self._named)
        if ("telemetry", "log_level") not in self._named:
            overrides["TELEMETRY_LOG_LEVEL"] = "warning"
        if traces is not None:
            overrides |= {"TELEMETRY_TRACES": f"zipkin+{traces}", "TELEMETRY_TRACE_SESSIONS": "all"}
        return dict(os.environ) | {f"WEIR_{name}": value for name, value in overrides.items()}

    async def suspend(self) -> None:
        await asyncio.gather(*(edge.suspend() for edge in self.edges))

    async def stop(self) -> None:
        await asyncio.gather(*(edge.stop(self._drain_grace + _STOP_MARGIN) for edge in self.edges))


_LOCAL = {
    "smp": (("proxy", "allow_local_relays"),),
    "ntf": (("subscriber", "allow_local_servers"), ("web_push", "allow_local")),
}


def _allow_local(program: Program, named: Collection[tuple[str, str]]) -> dict[str, str]:
    return {f"{section}_{key}".upper(): "on" for section, key in _LOCAL[program.name] if (section, key) not in named}


def _metrics_url(settings: UpSettings, ports: Reserved, page: str | None) -> str | None:
    if ports.metrics is not None:
        return f"http://{_reachable(settings.metrics_listen, settings.hosts[0])}:{ports.metrics}/metrics"
    return f"{page}metrics" if page and settings.metrics else None


def _reachable(listen: str, host: str) -> str:
    name = host if listen in ("0.0.0.0", "::") else listen
    return f"[{name}]" if ":" in name else name
