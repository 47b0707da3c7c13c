"""An edge's gauges, and its life as a process."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from dataclasses import fields, replace
from pathlib import Path

import pytest

from tests.router.fleet import Fleet, router_config
from tests.router.notifier import nkey
from tests.router.service import credentials, subs
from tests.support.ports import free_port
from weir.client.errors import ConnectionClosed
from weir.client.smp import SmpClient
from weir.redis.embedded import Embedded
from weir.router.config import RouterConfig
from weir.router.edge import Edge
from weir.router.surface.metrics import FLEET, GAUGES, render_fleet
from weir.runtime.drain import QUIET
from weir.surface.fleet import Fleet as FleetView
from weir.transport.client import ConnectError
from weir.transport.server import bind
from weir.wire.smp import commands as cmd
from weir.wire.smp.ids_hash import of_id
from weir.wire.smp.replies import ALLS, OK


async def test_gauges(fleet: Fleet) -> None:
    await fleet.add()
    edge = fleet[2]
    r, n = await fleet.client(2), await fleet.client(2)
    service = await fleet.client(2, service=credentials())
    queues = [await r.new(secure=True) for _ in range(3)]
    notifier = await nkey(r, queues[0])
    await n.do(cmd.NSUB(), notifier.ntf_id, notifier.key)
    queue = await service.new()
    await subs(service, 1, of_id(queue.rcv_id))
    assert (await service.event()).reply == ALLS()
    s = await fleet.client(0)
    assert await s.send(queues[0], b"1") == OK()
    await r.msg(queues[0])
    gauges = edge.gauges()
    expected = {
        "clients": 3,
        "subscriptions": 3,
        "subscribed_clients": 1,
        "ntf_subscriptions": 1,
        "ntf_clients": 1,
        "service_subscriptions": 1,
        "service_queues": 1,
        "ntf_services": 0,
        "ntf_service_queues": 0,
        "in_flight": 1,
        "in_flight_clients": 1,
        "pending_60": 1,
        "pending_more": 0,
        "forwards": 0,
        "deferred": 0,
        "folds": 0,
        "relays": 0,
        "sockets_accepted": 3,
        "sockets_closed": 0,
        "handshakes": 0,
    }
    assert {name: gauges[name] for name in expected} == expected
    read = {number for metric in GAUGES for _, number in metric.samples} | {number for *_, number in FLEET}
    assert read <= gauges.keys(), "what the metrics show is what edges say"
    assert gauges["record_cache"] > 0 and gauges["certificate_days"] > 300
    infos = sorted(edge.clients(), key=lambda info: info.id)
    assert [(info.version, info.subs, info.ntf_subs, info.service) for info in infos] == [
        (19, 3, 0, False),
        (19, 0, 1, False),
        (19, 0, 0, True),
    ]


async def test_counters_add_up_in_the_store(fleet: Fleet) -> None:
    await fleet.add()
    before = (await fleet[2].store.stats.read_stats()).get("msgSent", 0)
    r, s = await fleet.client(2), await fleet.client(2)
    queue = await r.new(secure=True)
    for _ in range(5):
        assert await s.send(queue, b"1") == OK()
        await r.text(queue)
    await fleet[2].save()
    assert fleet[2].counted()["msgSent"] == 5
    assert (await fleet[2].store.stats.read_stats())["msgSent"] >= before + 5
    await fleet[2].save()
    assert fleet[2].counted()["msgSent"] == 5
    edges = await fleet[0].store.stats.read_edges()
    assert edges[fleet[2].edge_id]["clients"] == 2


async def test_connections_that_edges_end_are_counted(fleet: Fleet, config: RouterConfig) -> None:
    """By reason, for the whole fleet, wherever one asks."""
    before = (await FleetView(fleet[1]).numbers()).stats
    small = await fleet.add(transport=replace(config.transport, max_clients=2, handshake_timeout=0.2, half_open=1))
    host, port = "127.0.0.1", small.ports[0]
    _, crowded_out = await asyncio.open_connection(host, port)
    reader, timed_out = await asyncio.open_connection(host, port)
    assert await reader.read() == b""
    reader, failed = await asyncio.open_connection(host, port)
    failed.write(b"GET / HTTP/1.1\r\n\r\n")
    await reader.read()
    for _ in range(2):
        await fleet.client(2)
    with pytest.raises(ConnectError):
        await fleet.client(2)
    after = (await FleetView(fleet[1]).numbers()).stats
    reasons = ("refused", "crowded_out", "timed_out", "failed", "stalled")
    increase = [after.get(f"connections_{name}", 0) - before.get(f"connections_{name}", 0) for name in reasons]
    assert increase == [1, 1, 1, 1, 0]
    text = render_fleet(after, {}, {}, {}, "", "")
    for name in reasons:
        assert f'weir_connections_ended{{reason="{name}"}} {after.get(f"connections_{name}", 0)}\n' in text
    for writer in (crowded_out, timed_out, failed):
        writer.close()


async def test_an_edge_is_counted_as_soon_as_it_takes_clients(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("weir.runtime.edge.REPORT_INTERVAL", 3600.0)
    edge = await fleet.add()
    async with asyncio.timeout(10):
        while not (edges := await fleet[0].store.stats.read_edges()).get(edge.edge_id):
            await asyncio.sleep(0.01)
    assert edges[edge.edge_id]["clients"] == 0
    assert (await fleet[0].store.stats.read_stats())["fromTime"] > 0


async def test_suspend_and_resume(config: RouterConfig) -> None:
    fleet = Fleet(config)
    port = free_port()
    edge = await fleet.add(
        transport=type(config.transport)(
            **{f.name: getattr(config.transport, f.name) for f in fields(config.transport)} | {"ports": (port,)}
        )
    )
    await edge._listener.stop_accepting()  # type: ignore[union-attr]
    edge._suspended = True
    await edge.resume()
    assert edge.ready
    _, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.close()
    await edge.suspend()
    assert not edge.ready
    await edge.resume()
    assert edge.ready
    await fleet.close()


@pytest.mark.parametrize("how", ["suspend", "drain"])
async def test_a_handshake_under_way_ends_when_the_edge_lets_nobody_in(config: RouterConfig, how: str) -> None:
    """Its client would be let in, and disconnected a moment later."""
    fleet = Fleet(config)
    edge = await fleet.add()
    half_open = [await asyncio.open_connection("127.0.0.1", edge.ports[0]) for _ in range(3)]
    async with asyncio.timeout(5):
        while edge.gauges()["handshakes"] < len(half_open):
            await asyncio.sleep(0)
        await getattr(edge, how)()
        for reader, writer in half_open:
            assert await reader.read() == b""
            writer.close()
    await fleet.close()


def start_process(redis: Embedded, identity: Path, placement: Path, port: int) -> subprocess.Popen[bytes]:
    """An edge that is ready for clients."""
    config = router_config(redis.url, identity, placement)
    environ = os.environ | {
        "WEIR_TRANSPORT_PORTS": str(port),
        "WEIR_TRANSPORT_LISTEN": "127.0.0.1",
        "WEIR_TRANSPORT_HOSTS": "127.0.0.1",
        "WEIR_TRANSPORT_IDENTITY": str(identity),
        "WEIR_REDIS_URL": redis.url,
        "WEIR_REDIS_PLACEMENT_KEY": str(config.redis.placement_key),
        "WEIR_HTTP_PORT": "0",
    }
    reading, writing = os.pipe()
    process = subprocess.Popen(
        [sys.executable, "-m", "weir.cli.main", "smp", "edge", "--ready-fd", str(writing)],
        env=environ,
        pass_fds=[writing],
    )
    os.close(writing)
    with os.fdopen(reading) as pipe:
        assert json.loads(pipe.readline())["ready"] is True
    return process


def address_of(identity: Path, port: int) -> str:
    return f"smp://{(identity / 'fingerprint').read_text().strip()}@127.0.0.1:{port}"


async def test_as_a_process(redis: Embedded, identity: Path, placement: Path, tmp_path: Path) -> None:
    """Started, used, SIGTERM: it ends within its grace, and its client with it."""
    port = free_port()
    process = await asyncio.to_thread(start_process, redis, identity, placement, port)
    client = await SmpClient.connect(address_of(identity, port))
    await client.ping()
    process.send_signal(signal.SIGTERM)
    async with asyncio.timeout(20):
        await client.closed.wait()
        assert await asyncio.to_thread(process.wait) == 0


async def test_clients_lose_no_command_while_one_of_two_edges_stops(
    redis: Embedded, identity: Path, placement: Path
) -> None:
    """Clients that connect, speak and leave all the time, on a port that two edges share.

    The stopping edge ends handshakes under way: such a client gets no answer at all. Its next attempt finds the other
    edge. A client that has got an answer gets all of them.
    """
    port = free_port()
    edges = [await asyncio.to_thread(start_process, redis, identity, placement, port) for _ in range(2)]
    done = 0
    failures: list[str] = []
    ended = asyncio.Event()

    async def come_and_go() -> None:
        nonlocal done
        answered, refused = False, 0
        while not ended.is_set():
            try:
                async with await SmpClient.connect(address_of(identity, port), reply_timeout=10.0) as client:
                    answered = False
                    await client.ping()
                    answered, refused = True, 0
                    await client.ping()
                    done += 1
            except (ConnectError, ConnectionClosed) as error:
                refused += 1
                if refused > 1 or (answered and isinstance(error, ConnectionClosed)):
                    failures.append(f"{type(error).__name__}: {error}, refused {refused} times")
            except Exception as error:
                failures.append(f"{type(error).__name__}: {error}")

    clients = [asyncio.create_task(come_and_go()) for _ in range(4)]
    await asyncio.sleep(1)
    edges[0].send_signal(signal.SIGTERM)
    assert await asyncio.to_thread(edges[0].wait, 20) == 0
    await asyncio.sleep(0.5)
    ended.set()
    await asyncio.gather(*clients)
    assert failures == [] and done > 0
    edges[1].terminate()
    assert await asyncio.to_thread(edges[1].wait, 20) == 0


class Returning:
    """A subscriber that connects again at once whenever its connection ends."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.is_up = asyncio.Event()
        self.ups_after_cut = 0
        self.cut = False
        self._ended = asyncio.Event()
        self._task = asyncio.create_task(self._run())

    async def _run(self) -> None:
        while not self._ended.is_set():
            try:
                async with await SmpClient.connect(self.address, reply_timeout=10.0, timeout=3.0) as client:
                    await client.ping()
                    self.ups_after_cut += self.cut
                    self.is_up.set()
                    ended = asyncio.create_task(self._ended.wait())
                    closed = asyncio.create_task(client.closed.wait())
                    await asyncio.wait((ended, closed), return_when=asyncio.FIRST_COMPLETED)
                    ended.cancel()
                    self.cut |= closed.done()
                    closed.cancel()
            except (ConnectError, ConnectionClosed):
                await asyncio.sleep(0)
            self.is_up.clear()

    def forget(self) -> None:
        """Begin to watch for the next stop."""
        self.cut, self.ups_after_cut = False, 0

    async def end(self) -> None:
        self._ended.set()
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)


async def all_up(clients: list[Returning]) -> None:
    async with asyncio.timeout(30):
        await asyncio.gather(*(client.is_up.wait() for client in clients))


BETWEEN_STOPS = 0.3  # seconds between two edges that are told to stop together, on a busy machine


async def test_a_client_that_returns_at_once_is_not_let_in_when_all_edges_stop(config: RouterConfig) -> None:
    """Otherwise the client would be cut off twice."""
    fleet = Fleet(config)
    port = free_port()
    for _ in range(2):
        fleet.edges.append(await Edge.start(config, socks=[bind("127.0.0.1", port, reuse_port=True)]))
    clients = [Returning(address_of(config.transport.identity, port)) for _ in range(8)]
    await all_up(clients)
    await asyncio.sleep(QUIET)  # clients that are quiet leave first
    drains = [asyncio.create_task(fleet[0].drain())]
    await asyncio.sleep(BETWEEN_STOPS)
    drains.append(asyncio.create_task(fleet[1].drain()))
    await asyncio.gather(*drains)
    assert [client.ups_after_cut for client in clients] == [0] * 8
    assert all(client.cut for client in clients)
    for client in clients:
        await client.end()
    await fleet.close()


@pytest.mark.all(reason="starts thirty processes")
@pytest.mark.timeout(400)
async def test_clients_that_return_at_once_are_cut_off_once_in_each_of_twenty_stops(
    redis: Embedded, identity: Path, placement: Path
) -> None:
    """In turns, one of two edges stops, and both."""
    port = free_port()

    async def start(count: int) -> list[subprocess.Popen[bytes]]:
        starting = (asyncio.to_thread(start_process, redis, identity, placement, port) for _ in range(count))
        return list(await asyncio.gather(*starting))

    edges = await start(2)
    clients = [Returning(address_of(identity, port)) for _ in range(8)]
    let_in = []
    for stop in range(20):
        await all_up(clients)
        await asyncio.sleep(QUIET)
        for client in clients:
            client.forget()
        stopping = edges[: 1 + stop % 2]
        for edge in stopping:
            edge.send_signal(signal.SIGTERM)
            await asyncio.sleep(BETWEEN_STOPS * (stop % 4 == 3))
        for edge in stopping:
            assert await asyncio.to_thread(edge.wait, 30) == 0
        most = 1 if len(stopping) == 1 else 0  # with one stop, a client may move to the edge that stays
        let_in += [stop for client in clients if client.ups_after_cut > most]
        edges = edges[len(stopping) :] + await start(len(stopping))
    assert let_in == []
    for client in clients:
        await client.end()
    for edge in edges:
        edge.terminate()
        assert await asyncio.to_thread(edge.wait, 30) == 0


async def test_a_start_that_fails_says_why_in_one_line(identity: Path, tmp_path: Path) -> None:
    (tmp_path / "placement.key").write_bytes(os.urandom(32))
    environ = os.environ | {
        "WEIR_TRANSPORT_IDENTITY": str(identity),
        "WEIR_REDIS_URL": "redis://127.0.0.1:1/0",
        "WEIR_REDIS_CONNECT_TIMEOUT": "200ms",
        "WEIR_REDIS_PLACEMENT_KEY": str(tmp_path / "placement.key"),
    }
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "weir.cli.main", "smp", "edge", env=environ, stderr=subprocess.PIPE
    )
    _, error = await process.communicate()
    assert process.returncode == 1
    assert error.count(b"\n") == 1 and b"Redis" in error and b"Traceback" not in error
