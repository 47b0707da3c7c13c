"""Edges as processes of their own, so that tests can kill them as a crash, an operator or the kernel would."""

import asyncio
import ctypes
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.support.ports import free_port
from weir.crypto.identity import init_identity, load_identity
from weir.wire.address import SmpAddress

_START_LIMIT = 30.0
_PR_SET_PDEATHSIG = 1


@dataclass
class Deployment:
    """Identity, placement key, Redis and settings (as environment variables) of the edges of one router."""

    directory: Path
    redis_url: str
    settings: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        identity = self.directory / "identity"
        if not identity.exists():
            init_identity(identity, "localhost", "ed25519")
            (self.directory / "placement.key").write_text(os.urandom(32).hex())
        self.fingerprint = load_identity(identity).fingerprint

    def environment(self, host: str, port: int) -> dict[str, str]:
        own = {name: value for name, value in os.environ.items() if not name.startswith("WEIR_")}
        return {
            **own,
            "WEIR_TRANSPORT_HOSTS": host,
            "WEIR_TRANSPORT_LISTEN": host,
            "WEIR_TRANSPORT_PORTS": str(port),
            "WEIR_TRANSPORT_IDENTITY": str(self.directory / "identity"),
            "WEIR_REDIS_URL": self.redis_url,
            "WEIR_REDIS_PLACEMENT_KEY": str(self.directory / "placement.key"),
            "WEIR_HTTP_PORT": "0",
            "WEIR_TELEMETRY_LOG_LEVEL": "warning",
            **self.settings,
        }


def die_with_parent() -> None:
    """A test run that is killed leaves no processes behind."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


class EdgeProcess:
    """One edge on a port of its own; after `kill` or `stop`, `start` starts its successor there."""

    def __init__(
        self,
        deployment: Deployment,
        host: str = "127.0.0.1",
        *,
        inside: Sequence[str] = (),
        program: Sequence[str] = ("weir.cli.main",),
        router: str = "smp",
        port: int | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """`inside`: the words that start a command where the edge shall run; `program`: a module and its first words;
        `router`: smp or ntf; `port`: shared with other edges; `environment`: variables of this edge alone."""
        self.deployment = deployment
        self.host = host
        self._inside = inside
        self._program = program
        self._environment = environment or {}
        self._router = router
        self.port = port or free_port()
        self.edge_id = ""
        self.log = Path(tempfile.mkstemp(prefix="edge-", suffix=".log", dir=deployment.directory)[1])
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def address(self) -> SmpAddress:
        return SmpAddress(self.deployment.fingerprint, (self.host,), self.port, scheme=self._router)

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    async def start(self) -> None:
        """Returns when clients can connect."""
        read, write = os.pipe()
        with self.log.open("ab") as output:
            self._process = subprocess.Popen(
                [*self._inside, sys.executable, "-m", *self._program, self._router, "edge", "--ready-fd", str(write)],
                env={**self.deployment.environment(self.host, self.port), **self._environment},
                pass_fds=(write,),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
                preexec_fn=die_with_parent,
            )
        os.close(write)
        with os.fdopen(read, "rb") as pipe:
            report = json.loads(await asyncio.to_thread(pipe.readline) or b'{"error": "it ended"}')
        if "error" in report:
            raise RuntimeError(f"{report['error']}\n{self.log.read_text()}")
        self.edge_id = report["edge"]

    def signal(self, number: int) -> None:
        if self.running:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """Kill the edge, as a crash would."""
        if self._process is not None:
            self.signal(signal.SIGKILL)
            self._process.wait()

    async def stop(self, limit: float = _START_LIMIT) -> int:
        """Send SIGTERM, which drains the edge. Return its exit code."""
        assert self._process is not None
        self.signal(signal.SIGTERM)
        return await asyncio.to_thread(self._process.wait, limit)

    def errors(self) -> list[str]:
        """The lines of the log that report errors."""
        lines = self.log.read_text(errors="replace").splitlines()
        return [line for line in lines if "Traceback" in line or "Error" in line]
