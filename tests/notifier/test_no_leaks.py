"""Nothing of a notification router leaks: devices, pushes and errors, at debug logging with everything traced.

The search is that of tests/test_no_leaks.py, for tokens, subscriptions, keys, endpoints and pushes.
"""

import asyncio
import json
import os
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.notifier.chaos.devices import Device, add_queue, make_device, until
from tests.router.fleet import Peer
from tests.support.collector import Collector, SpanSeen, collector
from tests.support.leaks import Secrets, pages
from tests.support.ports import free_port
from tests.support.up import Up, weir_up
from weir.bench.standins.apns import Apns, refusal
from weir.bench.standins.authority import Authority
from weir.bench.standins.server import Answer
from weir.bench.standins.web_push import WebPush
from weir.client.ntf import NtfClient
from weir.client.smp import SmpClient
from weir.crypto import p256
from weir.crypto.keys import generate
from weir.wire.address import ServerHost, SmpAddress
from weir.wire.ntf.device_token import web_push_token
from weir.wire.ntf.types import (
    SCHK,
    SDEL,
    SNEW,
    SUB,
    TCHK,
    TCRN,
    TDEL,
    TNEW,
    TRPL,
    TVFY,
    DeviceToken,
    PushProvider,
    SmpQueueNtf,
    SubStatus,
)

ADMIN = "administrators-word"
BODY = b"a message that nobody else may read, 0123456789"
HOST = b"smp.of-one-device-only.invalid"
KEY_ID, TEAM_ID, TOPIC = "KEY4567890", "TEAM567890", "dev.weir.app"


@dataclass
class Standins:
    """Push services in this process."""

    apns: Apns
    web_push: WebPush
    directory: Path
    smp: list[SimpleNamespace] = field(default_factory=list)  # as `make_device` and `add_queue` expect them

    def settings(self) -> dict[str, dict[str, Any]]:
        ca = str(self.directory / "ca.pem")
        apns = {"key": str(self.directory / "apns.p8"), "key_id": KEY_ID, "team_id": TEAM_ID, "topic": TOPIC}
        return {
            "apns": {**apns, "host": f"localhost:{self.apns.server.port}", "ca": ca},
            "web_push": {"subject": "mailto:admin@example.org", "ca": ca},
        }


@pytest.fixture
async def standins(tmp_path: Path) -> AsyncIterator[Standins]:
    authority, key = Authority(), p256.generate()
    p256.save_key(tmp_path / "apns.p8", key)
    (tmp_path / "ca.pem").write_bytes(authority.pem)
    apns = Apns(authority, key=key.public_key(), key_id=KEY_ID, team_id=TEAM_ID, topic=TOPIC)
    found = Standins(apns, WebPush(authority), tmp_path)
    await apns.start()
    await found.web_push.start()
    yield found
    await apns.close()
    await found.web_push.close()


def add_device(secrets: Secrets, name: str, device: Device) -> None:
    token = device.token
    secrets.add(f"{name} device token", token.token)
    if token.provider is PushProvider.WEB_PUSH:
        subscription = web_push_token(token.token)
        assert subscription is not None
        secrets.add(f"{name} endpoint", subscription.path.encode())
        secrets.add(f"{name} receiver's secret", subscription.auth)
        secrets.add(f"{name} receiver's key", subscription.p256dh)
    secrets.add(f"{name} token id", device.ids.token_id)
    secrets.add(f"{name} router's DH key", device.ids.dh_key)
    secrets.add(f"{name} DH secret", device.secret)
    secrets.add(f"{name} verify key", device.key.public)
    for one in device.queues:
        secrets.add(f"{name} subscription id", one.sub_id)
        secrets.add(f"{name} notifier id", one.notifier.ntf_id)
        secrets.add(f"{name} notifier's key", one.notifier.key.public)
        secrets.add(f"{name} notifier's private key", one.notifier.key.private)
        secrets.add(f"{name} queue", one.queue.rcv_id)


def add_pushes(secrets: Secrets, device: Device) -> None:
    for push in device.arrived:
        secrets.add("push", push.plain[60:120])
        code = device.opened(push, "verification")
        if code is not None:
            secrets.add("code", code)
    for messages in device.messages():
        for message in messages:
            secrets.add("nonce", message.nonce)
            secrets.add("metadata", message.meta)


async def busy(up: Up, standins: Standins, secrets: Secrets, control_port: int) -> None:
    """Most of what devices do, and most of what push services answer."""
    ntf = [await NtfClient.connect(up.run["ntf"]["address"].partition("?")[0]) for _ in range(3)]
    client = await SmpClient.connect(up.address)
    for one in (*ntf, client):
        secrets.add_client(one)
    address = SmpAddress.parse(up.address)
    standins.smp.append(SimpleNamespace(address=address))
    devices = [await make_device(standins, ntf[number], number) for number in range(2)]  # type: ignore[arg-type]
    peer = Peer(client)
    for device in devices:
        await add_queue(device, ntf[2], peer)
        add_device(secrets, device.token.provider.name, device)
    for device in devices:
        await deliver(device, ntf[0], peer)
        add_pushes(secrets, device)
    await failing_pushes(devices, standins, peer)
    await refused_commands(devices, ntf, secrets)
    ntf[1].connection.send_raw(bytes(512))
    await control(control_port, devices[0].ids.token_id)
    for one in (*ntf, client):
        one.connection.abort()


async def deliver(device: Device, ntf: NtfClient, peer: Peer) -> None:
    [one] = device.queues

    async def is_active() -> bool:
        return await ntf.send(SCHK(), one.sub_id, device.key) == SUB(SubStatus.ACTIVE)

    await until(is_active, 30, "the subscription is active")
    await peer.send(one.queue, BODY, True)
    await until(lambda: asyncio.sleep(0, bool(device.messages())), 30, "the push arrives")


async def failing_pushes(devices: list[Device], standins: Standins, peer: Peer) -> None:
    """Each answer is to one push, and lets the router log, count or repeat."""
    programs = (standins.apns.program, standins.web_push.program)
    answers = (
        (refusal(403, "InvalidProviderToken"), Answer(403)),
        (refusal(400, "a reason that nobody knows"), Answer(400)),
        (Answer(failure="reset"), Answer(failure="close")),
        (refusal(410, "Unregistered", timestamp=1), Answer(410)),
    )
    for of_services in answers:
        for device, program, answer in zip(devices, programs, of_services, strict=True):
            program.answer_next(answer)
            before = program.count
            await peer.send(device.queues[0].queue, BODY, True)
            await until(lambda p=program, b=before: asyncio.sleep(0, p.count > b), 30, "a push is tried")  # type: ignore[misc]


async def refused_commands(devices: list[Device], ntf: list[NtfClient], secrets: Secrets) -> None:
    stranger, other = generate("ed25519"), generate("x25519")
    for number, device in enumerate(devices):
        one, token = device.queues[0], device.ids.token_id
        client = ntf[number]
        await client.send(TCHK(), token, stranger)
        await client.send(TVFY(os.urandom(32)), token, device.key)
        await client.send(TNEW(device.token, device.key.spki, other.public), b"", device.key)  # another DH key
        await client.send(
            SNEW(token, SmpQueueNtf(ServerHost((HOST,), b"5223", bytes(32)), os.urandom(24)), stranger.pkcs8),
            b"",
            device.key,
        )
        await client.send(
            SNEW(token, SmpQueueNtf(device.world.smp[0].address.server_host, one.notifier.ntf_id), stranger.pkcs8),
            b"",
            device.key,
        )
        await client.send(TCRN(5), token, device.key)
        await client.send(TCRN(20), token, device.key)
        replaced = DeviceToken(PushProvider.APNS_PROD, os.urandom(32).hex().encode())
        secrets.add("replaced device token", replaced.token)
        await client.send(TRPL(replaced), token, device.key)
        await client.send(SDEL(), one.sub_id, device.key)
        await client.send(TDEL(), token, device.key)
        await client.send(
            TNEW(DeviceToken(PushProvider.APNS_TEST, os.urandom(32)), device.key.spki, other.public), b"", device.key
        )


async def control(port: int, token_id: bytes) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    lines = (
        "auth wrong-word",
        f"auth {ADMIN}",
        "stats",
        "server-info",
        "servers",
        f"nonsense {token_id.hex()}",
        "quit",
        "",
    )
    writer.write("\n".join(lines).encode())
    await reader.read()
    writer.close()


@pytest.mark.timeout(180)
async def test_nothing_leaks(tmp_path: Path, standins: Standins) -> None:
    home, secrets, control_port = tmp_path / "home", Secrets(), free_port()
    (home / "ntf").mkdir(parents=True)
    sections = {
        "auth": {"control_port_admin_password": ADMIN},
        "telemetry": {"log_level": "debug", "trace_sessions": "all"},
        "control": {"port": control_port},
        **standins.settings(),
    }
    lines = [
        f"[{name}]\n" + "".join(f"{k} = {json.dumps(v)}\n" for k, v in keys.items()) for name, keys in sections.items()
    ]
    (home / "ntf" / "weir.toml").write_text("\n".join(lines))
    async with collector() as collected:
        environ = {"TRACES": collected.url, "LOG_LEVEL": "debug", "SAMPLE_RATIO": "1"}
        environ = {f"WEIR_TELEMETRY_{name}": value for name, value in environ.items()}
        with weir_up(home, "--ntf", "--ntf-port", "0", environ=environ) as up:
            addresses = (up.address, up.run["ntf"]["address"])
            await busy(up, standins, secrets, control_port)
            seen = await asyncio.to_thread(pages, up.run["ntf"]["http"], up.run["ntf"]["metrics"])
            _, printed = await asyncio.to_thread(up.stop)
        for address in addresses:
            printed = printed.replace(address, "", 1)
        seen |= {"logs": printed.encode(), "spans": spans(collected)}
    seen["redis.log"] = (home / "redis" / "redis.log").read_bytes()
    secrets.add("body", BODY)
    secrets.add("SMP server that one device has named", HOST)
    secrets.add("administrator's password", ADMIN.encode())
    for name in ("storage.key", "placement.key"):
        raw = (home / "ntf" / name).read_bytes()
        secrets.add(name, raw if len(raw) == 32 else bytes.fromhex(raw.decode()))
    for path in (home / "ntf" / "vapid.key", tmp_path / "apns.p8"):
        scalar = p256.load_key(path).private_numbers().private_value
        secrets.add(path.name, scalar.to_bytes(32, "big"))
    assert "InvalidProviderToken" in printed, "the log has lines about pushes"
    assert secrets.leaks(seen) == set()


def spans(collected: Collector) -> bytes:
    assert {"TNEW", "TVFY", "SNEW", "NMSG", "push"} <= {span.name for span in collected.spans}
    assert any(is_whole(collected, push) for push in collected.named("push")), "SEND → NMSG → push"
    return b"".join(span.raw for span in collected.spans)


def is_whole(collected: Collector, push: SpanSeen) -> bool:
    """Whether a push can be followed back to its SEND, through both routers."""
    of_notification = [span for span in collected.spans if span.trace in push.links]
    edges = {span.edge for span in of_notification if span.name == "NMSG"}
    sends = {link for span in of_notification if span.name == "notification" for link in span.links}
    return len(edges) == 2 and any(span.trace in sends for span in collected.named("SEND"))
