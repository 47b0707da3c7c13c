"""`weir up`: a whole router on this machine, its starts, stops, crashes and refusals."""

import asyncio
import base64
import os
import signal
import socket
import stat
import subprocess
import time
import urllib.request
from hashlib import sha256
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import redis

from tests.support.ports import free_port
from tests.support.up import alive, spawn, weir_up
from weir.bench.cross import edges_of
from weir.cli.main import main
from weir.client.smp import SmpClient
from weir.crypto.certificates import certificate_key
from weir.crypto.identity import init_identity, load_identity
from weir.crypto.keys import KeyPair, generate
from weir.redis.memory import default_limit
from weir.transport.client import ConnectError
from weir.wire.smp.commands import NEW, SEND, SUB
from weir.wire.smp.replies import IDS, MSG, OK, SOK


def wait_until(what: str, condition: object, limit: float = 20.0) -> None:
    end = time.monotonic() + limit
    while not condition():  # type: ignore[operator]
        assert time.monotonic() < end, what
        time.sleep(0.05)


async def new_queue(address: str) -> tuple[IDS, KeyPair]:
    key = generate("x25519")
    async with await SmpClient.connect(address) as client:
        ids = await client.send(NEW(key.spki, generate("x25519").public, None, False), b"", key)
        assert isinstance(ids, IDS)
        assert await client.send(SEND(False, b"kept"), ids.snd_id) == OK()
    return ids, key


async def first_message(address: str, ids: IDS, key: KeyPair) -> object:
    async with await SmpClient.connect(address) as client:
        assert isinstance(await client.send(SUB(), ids.rcv_id, key), OK | SOK)
        return (await client.events.get()).reply


def test_it_starts_says_where_everything_is_and_stops_on_ctrl_c(tmp_path: Path) -> None:
    with weir_up(tmp_path / "home") as up:
        run = up.run
        pids = [run["pid"], run["redis"]["pid"], *run["edges"]]
        assert len(run["edges"]) == 2 and all(map(alive, pids))
        assert up.home.joinpath("run.json").read_text() == up.ready.read_text()
        for secret in ("placement.key", "identity/ca.key", "identity/server.key", "run.json", "weir.toml"):
            assert stat.S_IMODE((up.home / secret).stat().st_mode) == 0o600, secret
        code, output = up.stop(signal.SIGINT)
    assert code == 0
    for line in (
        f"address   {run['address']}",
        f"page      {run['http']}",
        f"metrics   {run['metrics']}",
        f"data      {run['home']}",
        "stop      Ctrl-C",
    ):
        assert line in output
    assert not any(map(alive, pids))
    assert not up.ready.exists() and not (up.home / "run.json").exists()


async def test_a_second_start_finds_its_queues_and_its_identity_again(tmp_path: Path) -> None:
    with weir_up(tmp_path / "home") as up:
        ids, key = await new_queue(up.address)
        before = up.run["address"].partition("@")[0]
    with weir_up(tmp_path / "home") as up:
        assert up.run["address"].partition("@")[0] == before
        assert isinstance(await first_message(up.address, ids, key), MSG)


async def test_a_crashed_edge_is_started_again_and_nothing_is_lost(tmp_path: Path) -> None:
    with weir_up(tmp_path / "home", "--edges", "2") as up:
        ids, key = await new_queue(up.address)
        before = up.run["edges"]
        os.kill(before[0], signal.SIGKILL)
        wait_until("the edge comes back", lambda: up.run["edges"][0] != before[0])
        assert up.run["edges"][1] == before[1]
        assert isinstance(await first_message(up.address, ids, key), MSG)
        _, output = up.stop()
    assert "edge 0 ended with signal SIGKILL; restarting it" in output


async def test_a_crashed_redis_is_started_again_and_nothing_is_lost(tmp_path: Path) -> None:
    """A client that stays connected notices a pause."""
    with weir_up(tmp_path / "home", "--edges", "1") as up:
        ids, key = await new_queue(up.address)
        before = up.run["redis"]["pid"]
        with redis.Redis.from_url(up.run["redis"]["url"]) as store:
            assert store.config_get("maxmemory") == {"maxmemory": str(default_limit())}
        async with await SmpClient.connect(up.address) as client:
            os.kill(before, signal.SIGKILL)
            wait_until("Redis comes back", lambda: up.run["redis"]["pid"] != before)
            async with asyncio.timeout(20):
                while await client.send(SEND(False, b"hello"), ids.snd_id) != OK():
                    await asyncio.sleep(0.1)
        assert isinstance(await first_message(up.address, ids, key), MSG)
        _, output = up.stop()
    assert "Redis ended (signal SIGKILL); restarting it" in output


def test_a_killed_supervisor_leaves_nothing_behind(tmp_path: Path) -> None:
    with weir_up(tmp_path / "home") as up:
        run = up.run
        os.kill(run["pid"], signal.SIGKILL)
        up.process.wait()
        for pid in (run["redis"]["pid"], *run["edges"]):
            wait_until(f"{pid} ends", lambda pid=pid: not alive(pid))


def test_nothing_is_imported_from_the_working_directory(tmp_path: Path) -> None:
    """A directory of that name may be anybody's, if others may write to the working directory."""
    (tmp_path / "weir").mkdir()
    (tmp_path / "weir" / "__init__.py").write_text("raise SystemExit('foreign code was run')\n")
    with weir_up(tmp_path / "home", cwd=tmp_path) as up:
        assert all(map(alive, up.run["edges"]))


@pytest.mark.all("waits longer than edges once had to stop")
async def test_stopping_takes_as_long_as_the_configuration_allows(tmp_path: Path) -> None:
    """Two edges disconnect one client per second each, so the last of 30 clients leaves after more than 10 seconds."""
    home = tmp_path / "home"
    home.mkdir()
    (home / "weir.toml").write_text('[drain]\ngrace = "40s"\nrate = 1\n')
    with weir_up(home) as up:
        clients = [await SmpClient.connect(up.address) for _ in range(30)]
        up.process.send_signal(signal.SIGTERM)
        loop = asyncio.get_running_loop()
        started, left = loop.time(), list[float]()
        for client in clients:
            client.on_close = lambda: left.append(loop.time() - started)
        for client in clients:
            await client.closed.wait()
        assert up.process.wait(30) == 0
    assert max(left) > 10, left
    at_once = max(sum(one <= other < one + 0.4 for other in left) for one in left)
    assert at_once <= 6, f"{at_once} of {len(left)} clients were cut at once"


async def test_no_edge_disconnects_clients_while_another_accepts_them(tmp_path: Path) -> None:
    """One edge is slow to hear that the router stops. The clients of the other reconnect at once: nobody takes them."""
    with weir_up(tmp_path / "home") as up:
        slow, quick = up.run["edges"]
        clients, edges = list[SmpClient](), list[int]()
        while len(clients) < 6 or {slow, quick} != set(edges):  # the kernel chooses the edge of a client
            clients.append(await SmpClient.connect(up.address))
            edges = edges_of(clients, up.run["smp_port"], (slow, quick))
        theirs = [client for client, edge in zip(clients, edges, strict=True) if edge == quick]
        again: list[asyncio.Task[bool]] = []

        async def reconnect() -> bool:
            try:
                await SmpClient.connect(up_address, timeout=5)
            except ConnectError:
                return False
            return True

        up_address = up.address
        for client in clients:
            client.on_close = lambda: again.append(asyncio.create_task(reconnect()))
        os.kill(slow, signal.SIGSTOP)
        try:
            up.process.send_signal(signal.SIGTERM)
            first = [asyncio.create_task(client.closed.wait()) for client in theirs]
            gone, waiting = await asyncio.wait(first, timeout=1.5, return_when=asyncio.FIRST_COMPLETED)
        finally:
            os.kill(slow, signal.SIGCONT)
        assert not gone, "a client was disconnected while the other edge still accepted clients"
        await asyncio.gather(*waiting, *(client.closed.wait() for client in clients))
        assert up.process.wait(30) == 0
        assert not any(await asyncio.gather(*again))
    assert len(again) == len(clients)


def test_an_ed448_identity_keeps_its_address_and_names_who_cannot_connect(tmp_path: Path) -> None:
    before = init_identity(tmp_path / "home" / "identity", "127.0.0.1", "ed448")
    with weir_up(tmp_path / "home") as up:
        assert up.address.startswith(f"smp://{base64.urlsafe_b64encode(before.fingerprint).decode()}@")
        _, output = up.stop()
    assert "clients that use Go's crypto/tls or rustls cannot connect" in output
    assert load_identity(tmp_path / "home" / "identity") == before


def test_a_new_identity_is_one_that_every_client_can_use(tmp_path: Path) -> None:
    with weir_up(tmp_path / "home") as up:
        _, output = up.stop()
    identity = load_identity(tmp_path / "home" / "identity")
    assert (identity.key.type, certificate_key(identity.chain[1])[0]) == ("ed25519", "ed25519")
    assert "Ed448" not in output


def test_settings_of_the_home_are_in_force(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "weir.toml").write_text('[auth]\ncreate_password = "word"\n')
    with weir_up(home) as up:
        assert ":word@" in up.address


def refused(process: subprocess.Popen[str]) -> str:
    output, _ = process.communicate(timeout=30)
    assert process.returncode == 1, output
    assert "Traceback" not in output
    assert output.count("\n") == 1, output
    return output.strip()


async def test_a_reference_server_moves_here_with_its_address(tmp_path: Path) -> None:
    """The identity is as openssl made it, the settings come from smp-server.ini through `weir import`."""
    home, ports = tmp_path / "home", (free_port(), free_port())
    reference_identity(home / "identity", "127.0.0.1")
    ini = tmp_path / "smp-server.ini"
    ini.write_text(
        "[INFORMATION]\nhosting_type = virtual\n[AUTH]\ncreate_password = word\n"
        f"[TRANSPORT]\nhost = 127.0.0.1,abcdefghij234567.onion\nport = {ports[0]},{ports[1]}\n"
    )
    assert main(["import", str(ini), "--output", str(home / "weir.toml")]) == 0
    der = subprocess.run(
        ["openssl", "x509", "-in", home / "identity" / "ca.crt", "-outform", "DER"], capture_output=True, check=True
    ).stdout
    fingerprint = base64.urlsafe_b64encode(sha256(der).digest()).decode()
    with weir_up(home, smp_port=None) as up:
        assert up.address == f"smp://{fingerprint}:word@127.0.0.1,abcdefghij234567.onion:{ports[0]}"
        for port in ports:
            async with await SmpClient.connect(f"smp://{fingerprint}@127.0.0.1:{port}") as client:
                await client.ping()
        with urllib.request.urlopen(up.http) as page:
            text = page.read().decode()
        assert f"smp://{fingerprint}@127.0.0.1,abcdefghij234567.onion:{ports[0]}" in text
        assert "word@" not in text


def reference_identity(directory: Path, host: str) -> None:
    """A CA and an online certificate, by the steps and extensions of the reference's `init`."""
    directory.mkdir(parents=True)
    name = "[req]\ndistinguished_name = name\nprompt = no\n[name]\n"
    (directory / "ca.conf").write_text(
        f"{name}CN = SMP server CA\nO = SimpleX\n[v3]\nsubjectKeyIdentifier = hash\n"
        "authorityKeyIdentifier = keyid:always\nbasicConstraints = critical,CA:true\n"
    )
    (directory / "server.conf").write_text(
        f"{name}CN = {host}\n[v3]\nbasicConstraints = CA:FALSE\n"
        "keyUsage = digitalSignature, nonRepudiation, keyAgreement\nextendedKeyUsage = serverAuth\n"
    )
    for line in (
        "genpkey -algorithm ED448 -out ca.key",
        "req -new -x509 -days 999999 -config ca.conf -extensions v3 -key ca.key -out ca.crt",
        "genpkey -algorithm ED448 -out server.key",
        "req -new -config server.conf -reqexts v3 -key server.key -out server.csr",
        "x509 -req -days 999999 -extfile server.conf -extensions v3 -in server.csr -CA ca.crt -CAkey ca.key "
        "-CAcreateserial -out server.crt",
    ):
        subprocess.run(["openssl", *line.split()], cwd=directory, capture_output=True, check=True)


def test_what_the_world_sees(tmp_path: Path) -> None:
    """A router for everybody: its page is on every address, its metrics and its control port are on loopback."""
    control = free_port()
    home = tmp_path / "home"
    home.mkdir()
    (home / "weir.toml").write_text(f"[control]\nport = {control}\n")
    with weir_up(home, "--host", "smp.example.org", "--edges", "1") as up:
        metrics = urlsplit(up.run["metrics"])
        page = urlsplit(up.run["http"])
        assert metrics.hostname == "127.0.0.1"
        with urllib.request.urlopen(up.run["metrics"], timeout=10) as answer:
            assert b"\nweir_edges 1\n" in answer.read()
        addresses = {port: listening_on(port) for port in (metrics.port, page.port, control)}
    assert addresses == {metrics.port: {"127.0.0.1"}, page.port: {"::"}, control: {"127.0.0.1"}}


async def test_the_control_port_reaches_every_edge(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    home, port = tmp_path / "home", free_port()
    home.mkdir()
    (home / "weir.toml").write_text(f'[control]\nport = {port}\n[auth]\ncontrol_port_admin_password = "word"\n')
    with weir_up(home, "--edges", "3") as up:
        clients = [await SmpClient.connect(up.address) for _ in range(12)]
        for client in clients:
            await client.ping()
        for command, line in (("clients", 12), ("server-info", "Clients: 12"), ("server-info", "Threads: 3")):
            assert await asyncio.to_thread(main, ["smp", "ctl", "--config", str(home / "weir.toml"), command]) == 0
            lines = capsys.readouterr().out.splitlines()
            assert len(lines) - 1 == line if isinstance(line, int) else line in lines
        for client in clients:
            await client.close()


def listening_on(port: int | None) -> set[str]:
    """The addresses that some process of this machine listens on at this port, as the kernel has them."""
    found = set()
    for family, table in ((socket.AF_INET, "tcp"), (socket.AF_INET6, "tcp6")):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            address, number = line.split()[1].split(":")
            if line.split()[3] == "0A" and int(number, 16) == port:
                words = [bytes.fromhex(address[at : at + 8])[::-1] for at in range(0, len(address), 8)]
                found.add(socket.inet_ntop(family, b"".join(words)))
    return found


@pytest.mark.parametrize("what", ["smp", "http", "metrics"])
def test_a_port_in_use_is_one_line(tmp_path: Path, what: str) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        ports = {"smp": "0", "http": "0", "metrics": "0", what: str(port)}
        words = [word for name, value in ports.items() for word in (f"--{name}-port", value)]
        said = refused(spawn(tmp_path / "home", *words))
    assert said == f"weir up: port {port} is in use: choose another with --{what}-port (0: any free one)"


def test_another_port_in_use_is_one_line(tmp_path: Path) -> None:
    """Known only when an edge starts: the others, which are about to be ready, say nothing."""
    home = tmp_path / "home"
    home.mkdir()
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        (home / "weir.toml").write_text(f"[control]\nport = {port}\n")
        said = refused(spawn(home, "--smp-port", "0", "--http-port", "0", "--edges", "3"))
    assert said == f"weir up: 127.0.0.1:{port}: address already in use"


def test_a_directory_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    said = refused(spawn(tmp_path / "file" / "home", "--smp-port", "0", "--http-port", "0"))
    assert said == f"weir up: {tmp_path / 'file' / 'home'}: not a directory"


def test_a_redis_that_does_not_answer_is_one_line(tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))  # held, and never listening: nobody else comes to answer there meanwhile
        url = f"redis://:secret@127.0.0.1:{free.getsockname()[1]}"
        said = refused(spawn(tmp_path / "home", "--smp-port", "0", "--http-port", "0", "--redis", url))
    assert said.startswith("weir up: Redis at 127.0.0.1:")
    assert "secret" not in said


def test_a_home_belongs_to_one(tmp_path: Path) -> None:
    with weir_up(tmp_path / "home") as up:
        said = refused(spawn(tmp_path / "home", "--smp-port", "0", "--http-port", "0"))
        assert up.run  # the files of the running one are left alone
    assert said == f"weir up: {tmp_path / 'home'}: another `weir up` runs there"


@pytest.mark.parametrize(
    ("toml", "says"),
    [
        ('[redis]\ndurability = "replicated"\n', "durability = replicated needs a Redis with replicas"),
        ("[queues]\nquota = 0\n", "weir.toml:2: quota: expected a number from 1"),
    ],
)
def test_settings_that_cannot_work_are_one_line(tmp_path: Path, toml: str, says: str) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "weir.toml").write_text(toml)
    assert says in refused(spawn(home, "--smp-port", "0", "--http-port", "0"))


def test_a_host_that_is_none(tmp_path: Path) -> None:
    said = refused(spawn(tmp_path / "home", "--smp-port", "0", "--http-port", "0", "--host", "a b"))
    assert said == "weir up: --host a b: not a host name or an IP address"


def test_a_long_path_is_no_trouble(tmp_path: Path) -> None:
    home = tmp_path / ("long" * 30) / "home"
    home.parent.mkdir()
    with weir_up(home) as up:
        socket_path = Path(up.run["redis"]["url"].removeprefix("unix://"))
        assert len(str(socket_path)) < 100 and socket_path.exists()
        up.stop()
    assert not socket_path.parent.exists()


def test_your_own_redis(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from weir.redis.embedded import start_embedded

    redis = start_embedded(tmp_path / "redis", port=0, password="word")
    try:
        with weir_up(tmp_path / "home", "--redis", redis.url) as up:
            assert up.run["redis"] == {"url": redis.url, "pid": None}
            _, output = up.stop()
        assert "Redis at redis://…@127.0.0.1:" in output
    finally:
        redis.stop()
