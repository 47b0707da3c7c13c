"""Devices: each has a token and queues with notifiers, and reads the pushes that a stand-in has taken for it."""

from __future__ import annotations

import asyncio
import base64
import json
import os
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TypeVar

from tests.notifier.chaos.world import World
from tests.router.fleet import Peer, Queue
from tests.router.notifier import Notifier, nkey
from weir.bench.standins.program import Arrived
from weir.client.errors import ClientError
from weir.client.ntf import NtfClient
from weir.client.smp import SmpClient
from weir.crypto.boxes import cb_decrypt
from weir.crypto.keys import KeyPair, dh, generate
from weir.transport.client import ConnectError
from weir.wire.ntf.push import PNMessageData, decode_messages
from weir.wire.ntf.types import IDSUB, IDTKN, OK, SNEW, TNEW, TVFY, DeviceToken, PushProvider, SmpQueueNtf
from weir.wire.smp import commands as smp
from weir.wire.smp import replies

R = TypeVar("R")
_PAUSE = 0.1  # seconds between two attempts


@dataclass
class Subscribed:
    """A queue, its notifier, and the subscription of the notification router."""

    queue: Queue
    notifier: Notifier
    sub_id: bytes


@dataclass
class Device:
    world: World
    token: DeviceToken
    target: str  # how the push service names the device
    key: KeyPair
    ids: IDTKN
    secret: bytes
    queues: list[Subscribed] = field(default_factory=list)

    @property
    def arrived(self) -> list[Arrived]:
        service = self.world.apns if self.token.provider is PushProvider.APNS_PROD else self.world.web_push
        return [push for push in service.program.arrived if push.target == self.target]

    def data(self, push: Arrived) -> dict[str, str]:
        """The inner object of a push, the same for all push services."""
        found = json.loads(push.plain)
        inner: dict[str, str] = found.get("notificationData", found)
        return inner

    def opened(self, push: Arrived, name: str) -> bytes | None:
        """What the router has encrypted for this device: the first of the two layers."""
        data = self.data(push)
        if name not in data:
            return None
        return cb_decrypt(self.secret, *(base64.urlsafe_b64decode(data[part]) for part in ("nonce", name)))

    async def code(self) -> bytes:
        async with asyncio.timeout(30):
            while True:
                for push in self.arrived:
                    if (code := self.opened(push, "verification")) is not None:
                        return code
                await asyncio.sleep(_PAUSE)

    def messages(self) -> list[list[PNMessageData]]:
        """The notifications of each push, in the order in which the pushes were accepted."""
        found = []
        for push in self.arrived:
            text = self.opened(push, "message")
            if text is not None:
                messages = decode_messages(text)
                assert messages, "a push without notifications"
                found.append(messages)
        return found

    def open_second_layer(self, message: PNMessageData) -> None:
        [of] = [one for one in self.queues if one.notifier.ntf_id == message.queue.notifier_id]
        assert of.notifier.open(replies.NMSG(message.nonce, message.meta)) is not None, "the SMP router's layer"


async def make_device(world: World, ntf: NtfClient, number: int) -> Device:
    """Register and activate a token: of Apple's service or of a Web Push service, by turns."""
    if number % 2:
        subscriber = world.web_push.subscribe()
        token, target = subscriber.token.device_token, world.web_push.target(subscriber)
    else:
        target = os.urandom(32).hex()
        token = DeviceToken(PushProvider.APNS_PROD, target.encode())
    key, dh_key = generate("x25519"), generate("x25519")
    ids = await ntf.send(TNEW(token, key.spki, dh_key.public), b"", key)
    assert isinstance(ids, IDTKN), ids
    device = Device(world, token, target, key, ids, dh(ids.dh_key, dh_key.private))
    assert await ntf.send(TVFY(await device.code()), ids.token_id, key) == OK()
    return device


async def add_queue(device: Device, ntf: NtfClient, peer: Peer) -> None:
    queue = await peer.new(subscribe=False, secure=True)
    notifier = await nkey(peer, queue)
    of_notifier = SmpQueueNtf(device.world.smp[0].address.server_host, notifier.ntf_id)
    reply = await ntf.send(SNEW(device.ids.token_id, of_notifier, notifier.key.pkcs8), b"", device.key)
    assert isinstance(reply, IDSUB), reply
    device.queues.append(Subscribed(queue, notifier, reply.sub_id))


class Sender:
    """Sends with the notification flag, and again after every failure: until the SMP router has answered OK."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._client: SmpClient | None = None

    async def send(self, queue: Queue, body: bytes) -> None:
        while True:
            try:
                if self._client is None or self._client.closed.is_set():
                    self._client = await SmpClient.connect(self._world.smp[0].address, reply_timeout=8.0)
                answer = await self._client.send(smp.SEND(True, body), queue.snd_id, queue.snd_key)
            except (ConnectError, ClientError):
                self._client = None
                await asyncio.sleep(_PAUSE)
                continue
            if answer == replies.OK():
                return
            await asyncio.sleep(_PAUSE)

    async def close(self) -> None:
        if self._client is not None:
            await self._client.close()


async def until(condition: Callable[[], Awaitable[R]], limit: float, what: str) -> R:
    """Wait until a condition is truthy."""
    try:
        async with asyncio.timeout(limit):
            while not (found := await condition()):
                await asyncio.sleep(_PAUSE)
            return found
    except TimeoutError:
        raise AssertionError(f"{what}: not within {limit:g} s") from None
