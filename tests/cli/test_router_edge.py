"""`weir smp edge`: one edge from a configuration file; what cannot start says why in one line."""

import asyncio
import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.ports import free_port
from tests.support.redis import discard, start_server
from weir.cli.main import main
from weir.client.smp import SmpClient
from weir.redis.embedded import Embedded
from weir.transport.client import ConnectError


@pytest.fixture(scope="module")
def redis() -> Iterator[Embedded]:
    server = start_server()
    yield server
    discard(server)


@pytest.fixture
def home(tmp_path: Path, redis: Embedded) -> Path:
    """An identity and a configuration, as an operator would make them."""
    assert main(["smp", "init", "--dir", str(tmp_path), "--host", "127.0.0.1"]) == 0
    (tmp_path / "weir.toml").write_text(
        f"""
        [transport]
        hosts = ["127.0.0.1"]
        listen = "127.0.0.1"
        ports = [{free_port()}]
        [redis]
        url = "{redis.url}"
        [http]
        port = 0
        """
    )
    return tmp_path


@pytest.fixture(scope="module")
def placement(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All edges of this file share one Redis, and so one key."""
    path = tmp_path_factory.mktemp("placement") / "key"
    path.write_text("11" * 32)
    return path


def start(home: Path, placement: Path, *arguments: str, fds: tuple[int, ...] = (), **environ: str) -> "Process":
    return subprocess.Popen(
        [sys.executable, "-m", "weir.cli.main", "smp", "edge", "--config", str(home / "weir.toml"), *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        pass_fds=fds,
        env={**os.environ, "WEIR_REDIS_PLACEMENT_KEY": str(placement), **environ},
    )


Process = subprocess.Popen[str]


def ready(home: Path, placement: Path, **environ: str) -> tuple[Process, dict[str, object]]:
    read, write = os.pipe()
    process = start(home, placement, "--ready-fd", str(write), fds=(write,), **environ)
    os.close(write)
    with os.fdopen(read) as pipe:
        return process, json.loads(pipe.readline())


def address(home: Path) -> str:
    text = (home / "weir.toml").read_text()
    port = text.partition("ports = [")[2].partition("]")[0]
    return f"smp://{(home / 'identity' / 'fingerprint').read_text().strip()}@127.0.0.1:{port}"


async def test_it_serves_and_drains_on_sigterm(home: Path, placement: Path) -> None:
    process, report = ready(home, placement)
    try:
        assert report["ready"] is True and report["edge"]
        client = await SmpClient.connect(address(home))
        assert await client.ping() > 0
        process.send_signal(signal.SIGTERM)
        await client.closed.wait()  # the edge disconnects the client, so that it reconnects elsewhere
        assert process.wait(30) == 0
    finally:
        process.kill()
        process.communicate()


async def test_sighup_takes_up_a_new_certificate_and_keeps_the_clients(home: Path, placement: Path) -> None:
    process, _ = ready(home, placement)
    try:
        client = await SmpClient.connect(address(home))
        assert client.connection.cert_key is not None
        before = client.connection.cert_key.chain[0]
        assert main(["smp", "cert", "--dir", str(home)]) == 0
        process.send_signal(signal.SIGHUP)
        await client.ping()
        async with await SmpClient.connect(address(home)) as other:
            assert other.connection.cert_key is not None
            assert other.connection.cert_key.chain[0] != before
        assert await client.ping() > 0
        await client.close()
    finally:
        process.kill()
        process.communicate()


async def test_after_sigusr1_it_accepts_nobody_and_keeps_its_clients(home: Path, placement: Path) -> None:
    read, write = os.pipe()
    process = start(home, placement, "--ready-fd", str(write), fds=(write,))
    os.close(write)
    try:
        with os.fdopen(read) as pipe:
            assert json.loads(await asyncio.to_thread(pipe.readline))["ready"] is True
            client = await SmpClient.connect(address(home))
            process.send_signal(signal.SIGUSR1)
            assert json.loads(await asyncio.to_thread(pipe.readline)) == {"suspended": True}
        with pytest.raises(ConnectError):
            await SmpClient.connect(address(home), timeout=5)
        assert await client.ping() > 0
        process.send_signal(signal.SIGTERM)
        await client.closed.wait()
        assert process.wait(30) == 0
    finally:
        process.kill()
        process.communicate()


def waiting(home: Path, placement: Path, *arguments: str, fds: tuple[int, ...] = ()) -> tuple[Process, int]:
    """An edge whose Redis is not there yet, which it has noticed; and the port it looks for it on."""
    with socket.create_server(("127.0.0.1", 0)) as nobody:
        port = nobody.getsockname()[1]
        environ = {"WEIR_REDIS_URL": f"redis://127.0.0.1:{port}/0", "WEIR_REDIS_CONNECT_TIMEOUT": "60s"}
        process = start(home, placement, *arguments, fds=fds, **environ)
        nobody.accept()[0].close()
    return process, port


def test_it_waits_for_a_redis_that_starts_later(home: Path, placement: Path) -> None:
    read, write = os.pipe()
    process, port = waiting(home, placement, "--ready-fd", str(write), fds=(write,))
    os.close(write)
    late = start_server(port=port)
    try:
        with os.fdopen(read) as pipe:
            assert json.loads(pipe.readline())["ready"] is True
    finally:
        process.kill()
        process.communicate()
        discard(late)


def test_sigterm_ends_the_wait_for_redis(home: Path, placement: Path) -> None:
    process, _ = waiting(home, placement)
    process.send_signal(signal.SIGTERM)
    assert process.communicate(timeout=30) == ("", None)
    assert process.returncode == 0


def refused(process: Process) -> str:
    output, _ = process.communicate(timeout=30)
    assert process.returncode == 1, output
    assert output.count("\n") == 1 and "Traceback" not in output, output
    return output.strip()


def test_another_placement_key_is_refused(home: Path, placement: Path, tmp_path: Path) -> None:
    process, _ = ready(home, placement)
    process.terminate()
    process.communicate()
    other = tmp_path / "other.key"
    other.write_text("22" * 32)
    said = refused(start(home, other))
    assert said.startswith("weir smp edge: ") and "placement key" in said


def test_what_is_missing_is_named(home: Path, placement: Path) -> None:
    none = str(home / "none")
    assert refused(start(home, Path(none))) == f"weir smp edge: {none}: cannot be read: No such file or directory"
    said = refused(start(home, placement, WEIR_TRANSPORT_IDENTITY=none))
    assert said == f"weir smp edge: {none}/server.crt: no such file or directory"
    said = refused(start(home, placement, WEIR_REDIS_URL=f"redis://127.0.0.1:{free_port()}"))
    assert said.startswith("weir smp edge: Redis at 127.0.0.1:")
    said = refused(start(home, placement, WEIR_REDIS_URL="mongodb://x"))
    assert said.startswith("weir smp edge: the Redis URL is not valid")
    said = refused(start(home, placement, WEIR_QUEUES_QUOTA="many"))
    assert said == "weir smp edge: environment: WEIR_QUEUES_QUOTA: expected a whole number"


@pytest.mark.parametrize("setting", ["WEIR_TRANSPORT_PORTS", "WEIR_HTTP_PORT", "WEIR_CONTROL_PORT"])
def test_a_port_in_use_is_named(home: Path, placement: Path, setting: str) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        said = refused(start(home, placement, WEIR_HTTP_LISTEN="127.0.0.1", **{setting: str(port)}))
    assert said == f"weir smp edge: 127.0.0.1:{port}: address already in use"


def test_a_failure_goes_through_the_pipe_of_whoever_waits(home: Path, placement: Path) -> None:
    process, report = ready(home, placement, WEIR_REDIS_URL="mongodb://x")
    assert str(report["error"]).startswith("the Redis URL is not valid")
    output, _ = process.communicate(timeout=30)
    assert (process.returncode, output) == (1, "")


async def test_whoever_waited_may_be_gone(home: Path, placement: Path) -> None:
    read, write = os.pipe()
    os.close(read)
    process = start(home, placement, "--ready-fd", str(write), fds=(write,))
    os.close(write)
    async with asyncio.timeout(30):
        while True:
            with contextlib.suppress(ConnectError):
                await (await SmpClient.connect(address(home))).close()
                break
            assert process.poll() is None
            await asyncio.sleep(0.05)
    process.send_signal(signal.SIGTERM)
    output, _ = process.communicate(timeout=30)
    assert (process.returncode, output) == (0, "")
