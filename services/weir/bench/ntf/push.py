"""The way of a notification: SEND at the SMP router → NMSG → push accepted by the stand-in of Apple's service.

The stand-in runs in this process, and so do the senders. Throughput is measured with many SENDs under way, in pushes
for each second of CPU time of the notification router and its Redis. Latency is measured with few SENDs, from the
answer to SEND until the push has arrived; the SMP router hands notifications over every few milliseconds.
"""

import asyncio
import base64
import json
import os
import tempfile
import time
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from weir.bench.clients import describe, open_client
from weir.bench.created import Created
from weir.bench.cycle import percentile
from weir.bench.own_router import own_ntf_router, own_router
from weir.bench.standins.apns import Apns
from weir.bench.standins.authority import Authority
from weir.bench.standins.program import Arrived, Program
from weir.bench.system import Spent, spent, usage
from weir.bench.target import BenchError, NtfTarget, Target
from weir.client.ntf import NtfClient
from weir.client.smp import SmpClient
from weir.crypto import p256
from weir.crypto.boxes import cb_decrypt
from weir.crypto.keys import KeyPair, dh, generate
from weir.wire.address import ServerHost
from weir.wire.ntf.types import (
    IDSUB,
    IDTKN,
    OK,
    SCHK,
    SNEW,
    SUB,
    TNEW,
    TVFY,
    DeviceToken,
    PushProvider,
    SmpQueueNtf,
    SubStatus,
)
from weir.wire.smp import commands as smp
from weir.wire.smp import replies

_KEY_ID, _TEAM_ID, _TOPIC = "KEY4567890", "TEAM567890", "dev.weir.app"
_SMP_SETTINGS = {
    "WEIR_QUEUES_NOTIFICATION_INTERVAL": "5ms",
    "WEIR_QUEUES_QUOTA": "100000",  # nobody receives the messages: a fast machine would fill an ordinary queue
}
_BODY = bytes(64)
_LIMIT = 60.0


@dataclass(frozen=True)
class PushOptions:
    tokens: int = 500
    seconds: float = 10.0
    warmup: float = 2.0
    window: int = 64  # SENDs under way
    latency_rate: float = 50.0  # SENDs per second while latency is measured
    replicas: int = 1


@dataclass(frozen=True)
class PushResult:
    pushes: int
    pushes_per_s: float
    pushes_per_cpu_s: float  # of replicas and Redis together
    replica_us: float  # CPU time of the replicas for one push
    redis_us: float
    redis_calls_per_push: float
    replica_cores: float
    generator_cores: float  # this process: senders and the push service's stand-in
    send_to_push_p50_ms: float
    send_to_push_p99_ms: float


class _Arrivals(Program):
    """Keeps the pushes of the set-up, and later the time at which each device's push arrived."""

    def __init__(self) -> None:
        super().__init__()
        self.on_push = self.arrived.append

    def accept(self, push: Arrived) -> None:
        self.on_push(push)


@dataclass
class _Device:
    target: str
    snd_id: bytes
    snd_key: KeyPair
    sub_id: bytes
    key: KeyPair


def run_push(options: PushOptions) -> PushResult:
    import uvloop

    result: PushResult = uvloop.run(_run(options))
    return result


async def _run(options: PushOptions) -> PushResult:
    with tempfile.TemporaryDirectory(prefix="weir-bench-") as directory, ExitStack() as routers:
        authority, key = Authority(), p256.generate()
        standin = Apns(authority, key=key.public_key(), key_id=_KEY_ID, team_id=_TEAM_ID, topic=_TOPIC)
        standin.program = arrivals = _Arrivals()
        await standin.start()
        try:
            settings = _settings(Path(directory), authority, key, standin.server.port)
            target = routers.enter_context(own_router(1, _SMP_SETTINGS))
            ntf = routers.enter_context(own_ntf_router(options.replicas, settings))
            return await _measure(options, target, ntf, arrivals)
        finally:
            await standin.close()


def _settings(directory: Path, authority: Authority, key: p256.PrivateKey, port: int) -> dict[str, str]:
    p256.save_key(directory / "apns.p8", key)
    (directory / "ca.pem").write_bytes(authority.pem)
    return {
        "WEIR_APNS_KEY": str(directory / "apns.p8"),
        "WEIR_APNS_KEY_ID": _KEY_ID,
        "WEIR_APNS_TEAM_ID": _TEAM_ID,
        "WEIR_APNS_TOPIC": _TOPIC,
        "WEIR_APNS_HOST": f"localhost:{port}",
        "WEIR_APNS_CA": str(directory / "ca.pem"),
    }


async def _measure(options: PushOptions, target: Target, ntf: NtfTarget, arrivals: _Arrivals) -> PushResult:
    async with (
        Created(target) as created,
        await open_client(target) as client,
        await NtfClient.connect(ntf.address, reply_timeout=_LIMIT) as device_side,
    ):
        server = target.address.server_host
        made = [await _make_device(created, client, device_side, arrivals, server) for _ in range(options.tokens)]
        await _until_subscribed(device_side, made)
        latencies = await _latencies(options, client, made, arrivals)
        used, pushes, cpu = await _throughput(options, client, made, ntf, arrivals)
    if not pushes:
        raise BenchError("no push arrived")
    spent_s = used.edges_s + used.redis_s
    return PushResult(
        pushes=pushes,
        pushes_per_s=pushes / used.wall_s,
        pushes_per_cpu_s=pushes / spent_s,
        replica_us=used.edges_s / pushes * 1e6,
        redis_us=used.redis_s / pushes * 1e6,
        redis_calls_per_push=used.redis_commands / pushes,
        replica_cores=sum(used.edge_fractions),
        generator_cores=cpu / used.wall_s,
        send_to_push_p50_ms=percentile(latencies, 0.5) * 1000,
        send_to_push_p99_ms=percentile(latencies, 0.99) * 1000,
    )


# Devices


async def _make_device(
    created: Created, client: SmpClient, ntf: NtfClient, arrivals: _Arrivals, server: ServerHost
) -> _Device:
    """A token that is active, and a queue whose notifications it gets."""
    target, key, dh_key = os.urandom(32).hex(), generate("x25519"), generate("x25519")
    device = DeviceToken(PushProvider.APNS_PROD, target.encode())
    ids = await ntf.send(TNEW(device, key.spki, dh_key.public), b"", key)
    if not isinstance(ids, IDTKN):
        raise BenchError(f"TNEW failed: {describe(ids)}")
    code = await _code(arrivals, target, dh(ids.dh_key, dh_key.private))
    if await ntf.send(TVFY(code), ids.token_id, key) != OK():
        raise BenchError("TVFY failed")
    queue = await created.queue(client, "x25519", subscribe=False)
    ntf_key, ntf_dh = generate("ed25519"), generate("x25519")
    nid = await client.send(smp.NKEY(ntf_key.spki, ntf_dh.public), queue.rcv_id, queue.rcv_key)
    if not isinstance(nid, replies.NID):
        raise BenchError(f"NKEY failed: {describe(nid)}")
    of = SmpQueueNtf(server, nid.ntf_id)
    sub = await ntf.send(SNEW(ids.token_id, of, ntf_key.pkcs8), b"", key)
    if not isinstance(sub, IDSUB):
        raise BenchError(f"SNEW failed: {describe(sub)}")
    assert queue.snd_key is not None
    return _Device(target, queue.snd_id, queue.snd_key, sub.sub_id, key)


async def _code(arrivals: _Arrivals, target: str, secret: bytes) -> bytes:
    """The code that was pushed to a device."""
    async with asyncio.timeout(_LIMIT):
        while True:
            for push in arrivals.arrived:
                if push.target == target:
                    arrivals.arrived.remove(push)
                    data = json.loads(push.plain)["notificationData"]
                    nonce, box = (base64.urlsafe_b64decode(data[name]) for name in ("nonce", "verification"))
                    code = cb_decrypt(secret, nonce, box)
                    assert code is not None
                    return code
            await asyncio.sleep(0.002)


async def _until_subscribed(ntf: NtfClient, devices: list[_Device]) -> None:
    async with asyncio.timeout(_LIMIT):
        for device in devices:
            while await ntf.send(SCHK(), device.sub_id, device.key) != SUB(SubStatus.ACTIVE):
                await asyncio.sleep(0.1)


# Measurements


async def _send(client: SmpClient, device: _Device) -> None:
    answer = await client.send(smp.SEND(True, _BODY), device.snd_id, device.snd_key)
    if answer != replies.OK():
        raise BenchError(f"SEND failed: {describe(answer)}")


async def _latencies(
    options: PushOptions, client: SmpClient, devices: list[_Device], arrivals: _Arrivals
) -> list[float]:
    """Seconds from the answer to SEND to the arrival of the push, one device after another."""
    sent: dict[str, float] = {}
    found: list[float] = []
    done = asyncio.Event()

    def on_push(push: Arrived) -> None:
        found.append(time.monotonic() - sent.get(push.target, time.monotonic()))
        if len(found) == len(devices):
            done.set()

    arrivals.on_push = on_push
    for device in devices:
        await _send(client, device)
        sent[device.target] = time.monotonic()
        await asyncio.sleep(1 / options.latency_rate)
    async with asyncio.timeout(_LIMIT):
        await done.wait()
    return sorted(found)


async def _throughput(
    options: PushOptions, client: SmpClient, devices: list[_Device], ntf: NtfTarget, arrivals: _Arrivals
) -> tuple[Spent, int, float]:
    """Return the CPU seconds of the router and Redis, the number of pushes, and the CPU seconds of this process."""
    count = 0

    def on_push(_push: Arrived) -> None:
        nonlocal count
        count += 1

    arrivals.on_push = on_push
    end = time.monotonic() + options.warmup + options.seconds

    async def send_on(number: int) -> None:
        while time.monotonic() < end:
            await _send(client, devices[number % len(devices)])
            number += options.window

    senders = [asyncio.create_task(send_on(number)) for number in range(options.window)]
    await asyncio.sleep(options.warmup)
    count, before, cpu = 0, usage(ntf.pids, ntf.redis_url), time.process_time()
    await asyncio.sleep(options.seconds)
    used, pushes, cpu = spent(before, usage(ntf.pids, ntf.redis_url)), count, time.process_time() - cpu
    await asyncio.gather(*senders)
    return used, pushes, cpu
