"""`weir redis`: the bundled Valkey alone."""

import signal
import socket
import subprocess
import sys
from pathlib import Path

import redis

from tests.support.ports import free_port
from weir.redis.memory import default_limit


def start(*arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "weir.cli.main", "redis", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def stop(process: subprocess.Popen[str]) -> int:
    process.send_signal(signal.SIGTERM)
    return process.wait(30)


def test_what_it_was_told_is_there_again(tmp_path: Path) -> None:
    port = free_port()
    (tmp_path / "password").write_text("hush\n")
    words = ["--dir", str(tmp_path / "data"), "--port", str(port), "--listen", "127.0.0.1"]
    words += ["--password-file", str(tmp_path / "password"), "--durability", "fsync"]
    for attempt in range(2):
        process = start(*words)
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == (
                f"weir redis: listening on 127.0.0.1:{port}, data in {tmp_path / 'data'}\n"
            )
            with redis.Redis(port=port, password="hush") as client:
                assert client.config_get("appendfsync") == {"appendfsync": "always"}
                assert client.config_get("save") == {"save": ""}
                assert client.get("kept") == (b"yes" if attempt else None)
                client.set("kept", "yes")
            assert stop(process) == 0
        finally:
            process.kill()
            process.wait()


def test_it_has_a_memory_limit(tmp_path: Path) -> None:
    """A server that grows until the kernel kills it would never start again."""
    for words, limit in ((["--max-memory", "64MiB"], 64 << 20), (["--max-memory", "0"], 0), ([], default_limit())):
        port = free_port()
        process = start("--dir", str(tmp_path), "--port", str(port), "--listen", "127.0.0.1", *words)
        try:
            assert process.stdout is not None
            process.stdout.readline()
            with redis.Redis(port=port) as client:
                assert client.config_get("maxmemory") == {"maxmemory": str(limit)}
                assert client.config_get("maxmemory-policy") == {"maxmemory-policy": "noeviction"}
        finally:
            stop(process)


def accepted(port: int, *words: str) -> list[bool]:
    found = []
    for word in words:
        with redis.Redis(port=port, password=word) as client:
            try:
                found.append(bool(client.ping()))
            except redis.AuthenticationError:
                found.append(False)
    return found


def test_a_changed_password_file_is_followed(tmp_path: Path) -> None:
    port, file = free_port(), tmp_path / "password"
    file.write_text("old\n")
    process = start(
        "--dir", str(tmp_path / "data"), "--port", str(port), "--listen", "127.0.0.1", "--password-file", str(file)
    )
    try:
        assert process.stdout is not None
        process.stdout.readline()
        with redis.Redis(port=port, password="old", single_connection_client=True) as client:
            for words in (("old", "new"), ("new", "old"), ("new",)):
                file.write_text("")  # an editor empties the file first: the server keeps its passwords
                file.write_text("\n".join(words) + "\n")
                told = process.stdout.readline()
                assert told == f"weir redis: the password file has changed; passwords accepted now: {len(words)}\n"
                assert accepted(port, "old", "new", "other") == ["old" in words, True, False]
            assert client.ping(), "an open connection stays"
        assert stop(process) == 0
    finally:
        process.kill()
        process.wait()


def refused(*arguments: str) -> str:
    process = start(*arguments)
    output, _ = process.communicate(timeout=30)
    assert process.returncode == 1 and output.count("\n") == 1, output
    return output


def test_refusals_are_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert "not a directory" in refused("--dir", str(tmp_path / "file" / "data"), "--port", str(free_port())).lower()
    assert "no such file" in refused("--dir", str(tmp_path), "--password-file", str(tmp_path / "none"))
    (tmp_path / "empty").write_text("\n")
    assert "has no password" in refused("--dir", str(tmp_path), "--password-file", str(tmp_path / "empty"))
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        said = refused("--dir", str(tmp_path), "--port", str(other.getsockname()[1]), "--listen", "127.0.0.1")
    assert "address already in use" in said.lower()
