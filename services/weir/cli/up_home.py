"""The home directory of `weir up`: identity, placement key, Redis' files and weir.toml. The first start makes them."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from weir.cli.errors import Fail, os_error
from weir.cli.programs import NTF, SMP, Program
from weir.cli.router_init import make_deployment_key, make_identity, make_vapid_key
from weir.crypto.pem import UnusableFile, write_file

if TYPE_CHECKING:
    from weir.crypto.identity import Identity

_SETTINGS = """\
# Settings of this router. `COMMAND config list` lists all settings. Options of `weir up` win over this file.
# Identity and keys are always those in this directory.

[information]
# source_code = "https://…"
# operator = "…"
"""
_UNIX_SOCKET_LIMIT = 100


@dataclass
class Home:
    path: Path
    program: Program = SMP
    _lock: int = -1
    _temporary: list[Path] = field(default_factory=list)

    @property
    def identity(self) -> Path:
        return self.path / "identity"

    @property
    def placement_key(self) -> Path:
        return self.path / "placement.key"

    @property
    def storage_key(self) -> Path:
        return self.path / "storage.key"

    @property
    def vapid_key(self) -> Path:
        return self.path / "vapid.key"

    @property
    def config(self) -> Path:
        return self.path / "weir.toml"

    @property
    def redis(self) -> Path:
        return self.path / "redis"

    @property
    def run_file(self) -> Path:
        return self.path / "run.json"

    def open(self) -> None:
        """Lock the directory for this process and make missing files."""
        try:
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._lock = _lock_file(self.path / "lock")
            if not self.config.exists():
                settings = _SETTINGS.replace("COMMAND", self.program.command)
                write_file(self.config, settings.encode(), 0o600)  # the operator may add passwords
        except BlockingIOError:
            raise Fail(f"{self.path}: another `weir up` runs there") from None
        except OSError as error:
            raise os_error(error.filename or self.path, error) from None
        make_deployment_key(self.placement_key)
        if self.program is NTF:
            make_deployment_key(self.storage_key)
            make_vapid_key(self.vapid_key)

    def ensure_identity(self, host: str) -> Identity:
        """Return the identity. If there is none, make one."""
        if not (self.identity / "ca.crt").exists():
            return make_identity(self.identity, host)
        from weir.crypto.identity import load_identity

        try:
            return load_identity(self.identity)
        except UnusableFile as error:
            raise Fail(str(error)) from None
        except OSError as error:
            raise os_error(error.filename or self.identity, error) from None

    def redis_socket(self) -> Path:
        """Return the path of Redis' Unix socket: in the home, or in a temporary directory if the path is too long."""
        self.redis.mkdir(mode=0o700, exist_ok=True)
        path = self.redis.resolve() / "redis.sock"
        if len(os.fsencode(path)) <= _UNIX_SOCKET_LIMIT:
            return path
        directory = Path(tempfile.mkdtemp(prefix="weir-"))
        self._temporary.append(directory)
        return directory / "redis.sock"

    def write_run(self, run: dict[str, Any], ready_file: Path | None) -> None:
        """Write the addresses and process ids of this run to run.json and `ready_file`.

        Each file appears complete: a program that waits for the file may read it at once.
        """
        for path in filter(None, (self.run_file, ready_file)):
            temporary = path.with_name(f".{path.name}.{os.getpid()}")
            try:
                temporary.touch(mode=0o600)
                temporary.write_text(json.dumps(run, indent=1) + "\n")
                temporary.replace(path)
            except OSError as error:
                raise os_error(path, error) from None

    def close(self, ready_file: Path | None) -> None:
        if self._lock < 0:
            return  # another process holds the lock
        for path in filter(None, (self.run_file, ready_file)):
            path.unlink(missing_ok=True)
        for directory in self._temporary:
            shutil.rmtree(directory, ignore_errors=True)
        os.close(self._lock)
        self._lock = -1


def _lock_file(path: Path) -> int:
    """Lock a file. The kernel releases the lock when this process ends, even by kill -9."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        raise
    return descriptor
