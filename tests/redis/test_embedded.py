"""The bundled server: starts on what is there, ends cleanly, and says in one line why it cannot start."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import redis

from tests.support.ports import free_port
from weir.redis import embedded
from weir.redis.embedded import Embedded, binary, start_embedded
from weir.redis.errors import StoreError


def test_data_survives_a_stop(tmp_path: Path) -> None:
    for expected in (None, b"value"):
        server = start_embedded(tmp_path / "data")
        with redis.Redis.from_url(server.url) as client:
            assert client.get("key") == expected
            client.set("key", "value")
            config = client.config_get("*")
            assert (config["save"], config["appendonly"], config["appendfsync"]) == ("", "yes", "everysec")
        assert server.running
        server.stop()
        assert not server.running
    assert not list((tmp_path / "data").rglob("dump.rdb"))


def test_port_socket_and_password(tmp_path: Path) -> None:
    socket = tmp_path / "s.sock"
    server = start_embedded(tmp_path, port=0, unix_socket=socket, password='a "b" \\c', appendfsync="always")
    try:
        with redis.Redis.from_url(server.url) as client:
            assert client.config_get("appendfsync")["appendfsync"] == "always"
        with redis.Redis(unix_socket_path=str(socket), password='a "b" \\c') as client:
            assert client.ping()
        assert b'a "b"' not in Path(f"/proc/{server.pid}/cmdline").read_bytes()
        assert socket.stat().st_mode & 0o077 == 0
        assert tmp_path.joinpath("redis.log").exists()
    finally:
        server.stop()


@pytest.mark.all("loads for seconds")
def test_data_that_take_long_to_load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    server = start_embedded(tmp_path)
    with redis.Redis.from_url(server.url) as client, client.pipeline() as pipe:
        for n in range(6000):
            pipe.set(str(n), "value")
        pipe.execute()
    server.stop()
    monkeypatch.setattr(embedded, "_START_LIMIT", 2.0)
    began = time.monotonic()
    server = start_embedded(tmp_path, options={"key-load-delay": "1000"})  # microseconds for each key
    try:
        assert time.monotonic() > began + 4.0
        with redis.Redis.from_url(server.url) as client:
            assert client.dbsize() == 6000
    finally:
        server.kill()


def test_one_line_when_it_cannot_start(tmp_path: Path) -> None:
    port = free_port()
    server = start_embedded(tmp_path / "one", port=port)
    try:
        with pytest.raises(StoreError) as caught:
            start_embedded(tmp_path / "two", port=port)
        assert "in use" in str(caught.value)
        assert "\n" not in str(caught.value)
    finally:
        server.stop()
    with pytest.raises(StoreError, match="too long"):
        start_embedded(tmp_path / "three", unix_socket=tmp_path / ("x" * 200))
    with pytest.raises(StoreError, match="cannot start"):
        start_embedded(tmp_path / "four", server=tmp_path / "no-server")


def test_another_server_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEIR_REDIS_SERVER", "/opt/redis-server")
    assert binary() == Path("/opt/redis-server")


def test_it_ends_with_its_parent(tmp_path: Path) -> None:
    program = (
        "import sys, time; from pathlib import Path; from weir.redis.embedded import start_embedded;"
        f"print(start_embedded(Path({str(tmp_path)!r})).pid, flush=True); time.sleep(60)"
    )
    parent = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE)
    assert parent.stdout is not None
    pid = int(parent.stdout.readline())
    os.kill(pid, 0)
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    parent.stdout.close()
    limit = time.monotonic() + 10
    while Path(f"/proc/{pid}/status").exists() and "zombie" not in Path(f"/proc/{pid}/status").read_text():
        assert time.monotonic() < limit
        time.sleep(0.05)


def accepts(server: Embedded, password: str) -> bool:
    port = int(server.url.rpartition(":")[2])
    with redis.Redis(port=port, password=password) as client:
        try:
            return bool(client.ping())
        except redis.AuthenticationError:
            return False


def test_several_passwords_and_others_later(tmp_path: Path) -> None:
    one, two, three = 'a "b" \\c', "two", "three"
    server = start_embedded(tmp_path, port=0, password=one, other_passwords=(two,))
    try:
        assert [accepts(server, word) for word in (one, two, three)] == [True, True, False]
        with redis.Redis(
            port=int(server.url.rpartition(":")[2]), password=one, single_connection_client=True
        ) as client:
            client.set("key", "value")
            for words in ((two, one), (three,), (one, two)):
                assert server.accept_passwords(words)
                assert [accepts(server, word) for word in (one, two, three)] == [
                    word in words for word in (one, two, three)
                ]
            assert client.get("key") == b"value", "an open connection stays"
        server.stop()
        assert not server.accept_passwords((one,))
    finally:
        server.stop()
