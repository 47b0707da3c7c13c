"""A whole edge: page, metrics, control port, draining, several edges on one Redis."""

import asyncio
import os
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.notifier.fleet import Fleet
from tests.notifier.router import LIMIT, notifier_config, smp_queue
from tests.support.ports import free_port
from weir.client.errors import ClientError
from weir.client.ntf import NtfClient
from weir.crypto import p256
from weir.crypto.keys import KeyPair, generate
from weir.notifier.config import Auth, NotifierConfig, WebPush
from weir.notifier.edge import Edge, check_stored
from weir.redis.embedded import Embedded
from weir.redis.errors import StoreError
from weir.runtime.settings import InactiveClients
from weir.surface.settings import Control, Http
from weir.wire.ntf.types import IDSUB, IDTKN, OK, SNEW, TNEW, TVFY, DeviceToken, PushProvider


@pytest.fixture
def config(redis: Embedded, identity: Path, keys: Path) -> NotifierConfig:
    """A deployment of its own on the Redis that the tests share."""
    config = notifier_config(redis.url, identity, keys)
    return replace(config, redis=replace(config.redis, prefix=f"t{os.urandom(4).hex()}"))


@pytest.fixture
async def fleet(config: NotifierConfig) -> AsyncIterator[Fleet]:
    fleet = Fleet(config)
    yield fleet
    await fleet.close()


async def active_token(client: NtfClient) -> tuple[bytes, KeyPair]:
    key, dh_key = generate("x25519"), generate("x25519")
    device = DeviceToken(PushProvider.APNS_NULL, os.urandom(8))
    ids = await client.send(TNEW(device, key.spki, dh_key.public), b"", key)
    assert isinstance(ids, IDTKN), ids
    assert await client.send(TVFY(b"any"), ids.token_id, key) == OK()
    return ids.token_id, key


async def get(port: int, path: str) -> tuple[int, Any]:
    async with aiohttp.ClientSession() as session, session.get(f"http://127.0.0.1:{port}{path}") as response:
        text = await response.text()
        return response.status, await response.json() if path.endswith("json") else text


async def test_two_edges_serve_one_deployment(fleet: Fleet) -> None:
    await fleet.add()
    await fleet.add()
    token_id, key = await active_token(await fleet.client(0))
    snew = SNEW(token_id, smp_queue(), generate("ed25519").pkcs8)
    assert isinstance(await (await fleet.client(1)).send(snew, b"", key), IDSUB)


async def test_page_status_metrics_and_health(fleet: Fleet) -> None:
    port, metrics_port = free_port(), free_port()
    edge = await fleet.add(http=Http(port=port, listen="127.0.0.1", metrics_port=metrics_port))
    await active_token(await fleet.client())
    assert (await get(port, "/healthz"))[0] == 200
    assert (await get(port, "/readyz"))[0] == 200
    code, page = await get(port, "/")
    assert code == 200 and "SimpleX notification router" in page and edge.address in page
    code, status = await get(port, "/status.json")
    assert code == 200
    assert status["ready"] and status["edges"] == 1 and status["connections"] == 1 and status["tokens"] == 1
    assert {"subscriptions", "servers", "subscribed", "pushes_waiting", "problems", "time"} <= status.keys()
    code, metrics = await get(metrics_port, "/metrics")
    assert code == 200
    assert "simplex_ntf_tokens_created 0" in metrics, "behaviour 4: null tokens are not counted"
    assert "simplex_ntf_tokens_total 1" in metrics
    code, metrics = await get(metrics_port, "/metrics/edge")
    assert code == 200 and "weir_edge_ready 1" in metrics and "weir_edge_clients 1" in metrics


async def say(port: int, *lines: str) -> list[str]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write("".join(f"{line}\n" for line in (*lines, "quit")).encode())
    async with asyncio.timeout(LIMIT):
        text = (await reader.read()).decode()
    writer.close()
    return text.splitlines()[2:]


async def test_control_port(fleet: Fleet) -> None:
    control = Control(port=free_port())
    auth = Auth(control_port_admin_password="admin", control_port_user_password="user")
    await fleet.add(control=control, auth=auth)
    await active_token(await fleet.client())
    said = await say(control.port, "auth user", "stats")
    assert said[0] == "Current role is CPRUser" and said[1].startswith("fromTime: ")
    assert "tknCreated: 0" in said and said[-1] == "daily active subscriptions: 0"
    said = await say(control.port, "auth user", "server-info", "servers")
    assert said[1:3] == ["Threads: 1", "Clients: 1"] and said[-1] == "AUTH"
    said = await say(control.port, "auth admin", "servers", "suspend", "resume", "save")
    assert said[1].startswith("server,subscribed,since,count,") and said[-1] == "server state saved!"


@pytest.mark.parametrize("command", ["stats", "stats-rts", "server-info", "servers", "suspend", "resume", "save"])
async def test_flaw_8_every_command_of_the_control_port_needs_a_role(fleet: Fleet, command: str) -> None:
    control = Control(port=free_port())
    await fleet.add(control=control)
    assert await say(control.port, command) == ["AUTH"]


async def test_behaviour_24_silence_alone_disconnects(fleet: Fleet) -> None:
    inactive = InactiveClients(disconnect=True, ttl=0.3, check_interval=0.1)
    await fleet.add(inactive_clients=inactive)
    client = await fleet.client()
    token_id, key = await active_token(client)
    await client.send(SNEW(token_id, smp_queue(), generate("ed25519").pkcs8), b"", key)
    async with asyncio.timeout(LIMIT):
        await client.closed.wait()


async def test_a_draining_edge_takes_no_clients_and_leaves_in_time(fleet: Fleet) -> None:
    edge = await fleet.add()
    client = await fleet.client()
    async with asyncio.timeout(LIMIT):
        await edge.drain()
        await client.closed.wait()
    assert not edge.ready
    with pytest.raises(ClientError):
        await client.ping()


async def test_the_address_has_the_key_of_web_push(fleet: Fleet, tmp_path: Path) -> None:
    key = p256.generate()
    p256.save_key(tmp_path / "vapid.key", key)
    edge = await fleet.add(web_push=WebPush(vapid_key=tmp_path / "vapid.key"))
    assert edge.address.startswith("ntf://")
    assert edge.address.partition("?")[2] == "vapid=" + p256.base64url(p256.point(key.public_key())).decode()


async def test_two_deployments_on_one_redis_do_not_see_each_other(fleet: Fleet, config: NotifierConfig) -> None:
    await fleet.add()
    other = Fleet(replace(config, redis=replace(config.redis, prefix=f"t{os.urandom(4).hex()}")))
    await other.add()
    try:
        token_id, key = await active_token(await fleet.client())
        snew = SNEW(token_id, smp_queue(), generate("ed25519").pkcs8)
        assert not isinstance(await (await other.client()).send(snew, b"", key), IDSUB)
        assert isinstance(await (await fleet.client()).send(snew, b"", key), IDSUB)
        assert (await other[0].store.stats.counts())["tokens"] == 0
    finally:
        await other.close()


async def test_behaviour_12_maintenance_checks_and_serves_nobody(config: NotifierConfig, tmp_path: Path) -> None:
    assert await check_stored(config) == 0
    (tmp_path / "storage.key").write_bytes(os.urandom(32))
    other = replace(config, redis=replace(config.redis, storage_key=tmp_path / "storage.key"))
    with pytest.raises(StoreError, match="storage key"):
        await check_stored(other)


async def test_an_edge_does_not_start_with_another_storage_key(config: NotifierConfig, tmp_path: Path) -> None:
    await check_stored(config)
    (tmp_path / "storage.key").write_bytes(os.urandom(32))
    with pytest.raises(StoreError, match="storage key"):
        await Edge.start(replace(config, redis=replace(config.redis, storage_key=tmp_path / "storage.key")))
