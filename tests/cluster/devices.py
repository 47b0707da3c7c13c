"""Devices that wait for push notifications, the push services that send to them, and people who send them messages.

`python -m tests.cluster.devices DIRECTORY HOST` starts stand-ins of APNs and of a Web Push service at HOST, writes
Apple's key and the services' CA into DIRECTORY, and prints one line of JSON about them. Then it reads orders, a line of
JSON each:

    {"join": NUMBER, "ntf": ADDRESS, "smp": ADDRESS}   devices register and subscribe a queue each, which gets messages
    {"team": PATH, "id": KEY_ID}                       a further key of Apple's

A message is sent when the one before has been pushed to the device and acknowledged by it. So a notification that is
lost stops its queue, which Devices.flows reports. The journal has a line for each step:

    J device              it has registered, and its token is active
    O device n            message n was answered OK
    P device n seconds    its notification was pushed, so many seconds after it was sent
    D device              a push named no message that an earlier push had not named
"""

from __future__ import annotations

import asyncio
import base64
import itertools
import json
import subprocess
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import uvloop

from tests.chaos.journal import Writer
from tests.chaos.worker import REPLY_LIMIT
from tests.cluster.harness import REPO, Cluster, wait_for
from weir.bench.standins.apns import Apns
from weir.bench.standins.authority import Authority
from weir.bench.standins.web_push import WebPush
from weir.client.errors import ClientError
from weir.client.ntf import NtfClient
from weir.client.smp import SmpClient
from weir.crypto import p256
from weir.crypto.boxes import cb_decrypt
from weir.crypto.keys import KeyPair, dh, generate
from weir.transport.client import ConnectError
from weir.wire.address import SmpAddress
from weir.wire.ntf import types as ntf
from weir.wire.ntf.push import decode_messages
from weir.wire.smp.commands import ACK, NEW, NKEY, SEND, SKEY, SUB, MessagingReq
from weir.wire.smp.message import RcvMsgBody, decrypt_message, decrypt_nmsg_meta
from weir.wire.smp.replies import ERR, IDS, MSG, NID, OK

KEY_ID, TEAM_ID, TOPIC = "KEY4567890", "TEAM567890", "dev.weir.app"
APNS_PORT, WEB_PUSH_PORT = 8443, 8444
_PAUSE = 0.05
_RETRY = 0.5
_LOOK = 0.02


@dataclass
class Device:
    """A device with one token and one queue."""

    number: int
    token: ntf.DeviceToken
    target: str  # as the push service names it
    key: KeyPair = field(default_factory=lambda: generate("ed25519"))
    dh_key: KeyPair = field(default_factory=lambda: generate("x25519"))
    secret: bytes = b""  # of the token
    code: asyncio.Future[bytes] = field(default_factory=lambda: asyncio.get_running_loop().create_future())
    queue_secret: bytes = b""
    notifier_secret: bytes = b""
    pushed: set[bytes] = field(default_factory=set)  # message ids
    acknowledged: set[bytes] = field(default_factory=set)
    news: asyncio.Event = field(default_factory=asyncio.Event)

    async def next_push(self) -> None:
        """Wait for the push of the oldest message. The push of a later one will do: a message whose OK was lost is sent
        once more, and a push has the newest message of each queue."""
        while not self.pushed - self.acknowledged:
            self.news.clear()
            await self.news.wait()


class Services:
    """The push services, and what they bring to the devices."""

    def __init__(self, directory: Path, host: str) -> None:
        self.journal = Writer(directory / "devices.journal")
        key = p256.generate()
        p256.save_key(directory / "authkey.p8", key)
        authority = Authority()
        (directory / "ca.crt").write_bytes(authority.pem)
        self.apns = Apns(authority, key=key.public_key(), key_id=KEY_ID, team_id=TEAM_ID, topic=TOPIC, host=host)
        self.web_push = WebPush(authority, host=host)
        self._devices: dict[str, Device] = {}

    async def start(self, host: str) -> None:
        await self.apns.start(host, APNS_PORT)
        await self.web_push.start(host, WEB_PUSH_PORT)

    def device(self, number: int, vapid: bytes) -> Device:
        """Every other device has an iPhone's token, the others a Web Push subscription for the router's key."""
        if number % 2:
            subscriber = self.web_push.subscribe(vapid=vapid)
            made = Device(number, subscriber.token.device_token, self.web_push.target(subscriber))
        else:
            target = generate("x25519").public.hex()
            made = Device(number, ntf.DeviceToken(ntf.PushProvider.APNS_PROD, target.encode()), target)
        self._devices[made.target] = made
        return made

    async def deliver(self) -> None:
        """Bring what has arrived to the devices."""
        programs = (self.apns.program, self.web_push.program)
        at = [0 for _ in programs]
        while True:
            for index, program in enumerate(programs):
                arrived = program.arrived[at[index] :]
                at[index] += len(arrived)
                for push in arrived:
                    if (device := self._devices.get(push.target)) is not None:
                        self._open(device, json.loads(push.plain))
            await asyncio.sleep(_LOOK)

    def _open(self, device: Device, content: dict[str, Any]) -> None:
        data = content.get("notificationData", content)
        nonce = base64.urlsafe_b64decode(data["nonce"])
        name = "verification" if "verification" in data else "message"
        plain = cb_decrypt(device.secret, nonce, base64.urlsafe_b64decode(data[name]))
        assert plain is not None, "a push that the device cannot open"
        if name == "verification":
            if not device.code.done():
                device.code.set_result(plain)
            return
        new = False
        for entry in decode_messages(plain) or ():
            meta = decrypt_nmsg_meta(device.notifier_secret, entry.nonce, entry.meta)
            assert meta is not None, "a notification that the device cannot open"
            new = new or meta.msg_id not in device.pushed
            device.pushed.add(meta.msg_id)
            device.news.set()
        if not new:
            self.journal.write("D", device.number)


# --- the programs of a device ---


@asynccontextmanager
async def smp_client(address: SmpAddress) -> AsyncIterator[SmpClient]:
    client = await SmpClient.connect(address, reply_timeout=REPLY_LIMIT, timeout=10)
    try:
        yield client
    finally:
        client.connection.abort()


async def again(work: Callable[[], Awaitable[None]]) -> None:
    """Repeat work whose connection has ended: edges stop during the tests."""
    while True:
        with suppress(ClientError, ConnectError):
            return await work()
        await asyncio.sleep(_RETRY)


class Joined:
    """A device that has registered, and its queue."""

    def __init__(self, device: Device, services: Services, smp: SmpAddress) -> None:
        self._device = device
        self._journal = services.journal
        self._smp = smp
        self._rcv_key, self._snd_key = generate("x25519"), generate("x25519")
        self._rcv_id = self._snd_id = b""
        self._acknowledged: set[int] = set()
        self._progress = asyncio.Event()

    async def join(self, address: SmpAddress) -> None:
        """Register as a phone does: a token, its verification, a queue with a notifier, a subscription."""
        device = self._device
        async with await NtfClient.connect(address, reply_timeout=REPLY_LIMIT) as client:
            made = await client.send(ntf.TNEW(device.token, device.key.spki, device.dh_key.public), b"", device.key)
            assert isinstance(made, ntf.IDTKN), made
            device.secret = dh(made.dh_key, device.dh_key.private)
            async with asyncio.timeout(REPLY_LIMIT):
                code = await device.code
            assert await client.send(ntf.TVFY(code), made.token_id, device.key) == ntf.OK()
            notifier_id, notifier_key = await self._make_queue()
            queue = ntf.SmpQueueNtf(self._smp.server_host, notifier_id)
            subscribed = await client.send(ntf.SNEW(made.token_id, queue, notifier_key.pkcs8), b"", device.key)
            assert isinstance(subscribed, ntf.IDSUB), subscribed
        self._journal.write("J", device.number)

    async def _make_queue(self) -> tuple[bytes, KeyPair]:
        device, notifier_key = self._device, generate("ed25519")
        dh_key, notifier_dh = generate("x25519"), generate("x25519")
        async with smp_client(self._smp) as client:
            new = NEW(self._rcv_key.spki, dh_key.public, None, False, MessagingReq())
            ids = await client.send(new, b"", self._rcv_key)
            assert isinstance(ids, IDS), ids
            self._rcv_id, self._snd_id = ids.rcv_id, ids.snd_id
            assert await client.send(SKEY(self._snd_key.spki), ids.snd_id, self._snd_key) == OK()
            notifier = await client.send(NKEY(notifier_key.spki, notifier_dh.public), ids.rcv_id, self._rcv_key)
            assert isinstance(notifier, NID), notifier
        device.queue_secret = dh(ids.dh_key, dh_key.private)
        device.notifier_secret = dh(notifier.dh_key, notifier_dh.private)
        return notifier.ntf_id, notifier_key

    async def live(self) -> None:
        await asyncio.gather(self._send(), again(self._receive))

    async def _send(self) -> None:
        for n in itertools.count():
            began = time.monotonic()
            await again(lambda n=n: self._send_one(n))
            self._journal.write("O", self._device.number, n)
            while n not in self._acknowledged:
                self._progress.clear()
                await self._progress.wait()
            self._journal.write("P", self._device.number, n, f"{time.monotonic() - began:.3f}")
            await asyncio.sleep(_PAUSE)

    async def _send_one(self, n: int) -> None:
        async with smp_client(self._smp) as client:
            while True:
                if await client.send(SEND(True, f"{n} ".encode()), self._snd_id, self._snd_key) == OK():
                    return
                await asyncio.sleep(_RETRY)

    async def _receive(self) -> None:
        """Acknowledge a message when it has been pushed: an earlier ACK would tell the router that nobody needs to."""
        device = self._device
        async with smp_client(self._smp) as client:
            reply: Any = await client.send(SUB(), self._rcv_id, self._rcv_key)
            while True:
                if isinstance(reply, ERR):
                    raise ClientError
                if not isinstance(reply, MSG):
                    reply = await self._event(client)
                    continue
                body = decrypt_message(device.queue_secret, reply.msg_id, reply.body)
                assert isinstance(body, RcvMsgBody), "the queue is full, or its message cannot be opened"
                await self._until_closed(client, device.next_push())
                msg_id = reply.msg_id
                reply = await client.send(ACK(msg_id), self._rcv_id, self._rcv_key)
                if not isinstance(reply, ERR):
                    device.acknowledged.add(msg_id)
                    self._acknowledged.add(int(body.body.split()[0]))
                    self._progress.set()

    async def _event(self, client: SmpClient) -> Any:
        event = await self._until_closed(client, client.events.get())
        return event.reply

    async def _until_closed(self, client: SmpClient, wanted: Awaitable[Any]) -> Any:
        """Raise ClientError when the connection ends first."""
        task, closed = asyncio.ensure_future(wanted), asyncio.ensure_future(client.closed.wait())
        try:
            await asyncio.wait((task, closed), return_when=asyncio.FIRST_COMPLETED)
            if not task.done():
                raise ClientError
            return task.result()
        finally:
            task.cancel()
            closed.cancel()


async def main(directory: Path, host: str) -> None:
    services = Services(directory, host)
    await services.start(host)
    told = {"apns": f"{host}:{APNS_PORT}", "key_id": KEY_ID, "team_id": TEAM_ID, "topic": TOPIC}
    print(json.dumps(told), flush=True)
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    numbers = itertools.count()

    async def orders(tasks: asyncio.TaskGroup) -> None:
        while line := await reader.readline():
            order = json.loads(line)
            if "team" in order:
                services.apns.trust(p256.load_key(Path(order["team"])).public_key(), order["id"])
                continue
            address, smp = SmpAddress.parse(order["ntf"]), SmpAddress.parse(order["smp"])
            assert address is not None and smp is not None
            vapid = p256.from_base64url(order["ntf"].rpartition("?vapid=")[2].encode())
            for _ in range(order["join"]):
                joined = Joined(services.device(next(numbers), vapid), services, smp)
                await joined.join(address)
                tasks.create_task(joined.live())

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(services.deliver())
        tasks.create_task(orders(tasks))


# --- the side of the tests ---


class Devices:
    """A context: inside it devices get notifications; `flows` says that they do, and at the end none is lost."""

    def __init__(self, cluster: Cluster, directory: Path, host: str) -> None:
        self._cluster = cluster
        self.directory = directory
        self._host = host
        self._process: subprocess.Popen[str] | None = None
        self.services: dict[str, str] = {}

    def __enter__(self) -> Devices:
        line = self._cluster.command(sys.executable, "-m", "tests.cluster.devices", str(self.directory), self._host)
        with (self.directory / "devices.log").open("ab") as log:
            self._process = subprocess.Popen(
                line, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, cwd=REPO, text=True
            )
        assert self._process.stdout is not None
        first = self._process.stdout.readline()
        assert first, self._log()
        self.services = json.loads(first)
        return self

    def __exit__(self, *_: object) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def order(self, **order: Any) -> None:
        assert self._process is not None and self._process.stdin is not None
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()

    def join(self, number: int, address: str, smp: str) -> None:
        """Add devices, and wait until their tokens are active."""
        before = len(self._lines("J"))
        self.order(join=number, ntf=address, smp=smp)

        def there() -> bool:
            self._check()
            return len(self._lines("J")) == before + number

        wait_for(f"{number} more devices", there, 60)

    def flows(self, messages: int = 3, seconds: float = 90) -> None:
        """Every device still gets notifications from here on."""
        before = self._counts("P")

        def on() -> bool:
            self._check()
            now = self._counts("P")
            return all(now[device] >= before[device] + messages for device in self._devices())

        try:
            wait_for(f"{messages} more notifications on each device", on, seconds)
        except AssertionError as error:
            sent, pushed = self._counts("O"), self._counts("P")
            stuck = [device for device in self._devices() if sent[device] > pushed[device]]
            raise AssertionError(f"{error}; devices that wait for a notification: {stuck}") from None

    def finish(self, kills: int) -> None:
        """Everything that was confirmed has been pushed, and no device got more than one push twice for each kill."""
        self.flows(1)
        duplicates = self._counts("D")
        assert all(count <= kills for count in duplicates.values()), duplicates

    def report(self) -> str:
        seconds = sorted(float(line[2]) for line in self._lines("P"))
        middle, most = seconds[len(seconds) // 2], seconds[-1]
        return (
            f"{len(seconds)} notifications on {len(self._devices())} devices, half of them within"
            f" {middle * 1000:.0f} ms, all within {most:.1f} s; {sum(self._counts('D').values())} pushes twice"
        )

    def _devices(self) -> set[str]:
        return {line[0] for line in self._lines("J")}

    def _counts(self, kind: str) -> Counter[str]:
        return Counter(line[0] for line in self._lines(kind))

    def _lines(self, kind: str) -> list[list[str]]:
        path = self.directory / "devices.journal"
        text = path.read_text() if path.exists() else ""
        return [line.split()[1:] for line in text.splitlines() if line.startswith(kind)]

    def _check(self) -> None:
        assert self._process is not None and self._process.poll() is None, self._log()

    def _log(self) -> str:
        return (self.directory / "devices.log").read_text()[-3000:]


if __name__ == "__main__":
    uvloop.run(main(Path(sys.argv[1]), sys.argv[2]))
