"""Mutated commands against a notification router, over TLS and with a real Redis, on all versions.

A round draws a version and a kind of key from its seed, registers a token with a subscription, and sends blocks of
mutated commands. Every transmission must get one answer: a reply, or an error of the protocol other than INTERNAL.
After the round, an honest device's token and subscription are as they were, and the router has logged no error.

    python -m tests.fuzz.ntf --seconds 60 [--seed 1]
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import logging
import os
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import uvloop

from tests.fuzz.mutation import mutate
from tests.notifier.router import Device, Registration, Router, apns_token, notifier_config, smp_queue
from tests.support.redis import discard, start_server
from weir.crypto.identity import init_identity
from weir.crypto.keys import KeyPair, KeyType, generate
from weir.wire.errors import Simple
from weir.wire.ntf.codec import encode_command
from weir.wire.ntf.transmission import NtfServerTransmission, decode_replies, encode_client, fits, for_auth, pack
from weir.wire.ntf.types import (
    ERR,
    IDSUB,
    PING,
    SCHK,
    SDEL,
    SNEW,
    SUB,
    TCHK,
    TCRN,
    TDEL,
    TKN,
    TNEW,
    TRPL,
    TVFY,
    NtfCommand,
    SubStatus,
    TokenStatus,
)
from weir.wire.versions import NTF_RANGE, VersionRange

BLOCKS = 12
ANSWERS = 10.0
_KEYS: tuple[KeyType, ...] = ("x25519", "ed25519", "ed448")


class Broken(AssertionError):
    """The router did what no input may make it do."""


class Log(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.errors: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.errors.append(record.getMessage())


class _Round:
    """One connection that sends mutated commands."""

    def __init__(self, rng: random.Random, device: Device, token: Registration, sub_id: bytes) -> None:
        self._rng = rng
        self._client = device.client
        self._token = token
        self._ids = [token.id, sub_id, os.urandom(24), b""]
        self._keys: list[KeyPair | None] = [token.key, token.key, generate(token.key.type), None]
        self._commands: list[Callable[[], NtfCommand]] = [
            PING,
            TCHK,
            SCHK,
            SDEL,
            lambda: TDEL() if rng.random() < 0.1 else PING(),
            lambda: TCRN(rng.randrange(65536)),
            lambda: TVFY(rng.randbytes(rng.choice((0, 32)))),
            lambda: TRPL(apns_token()),
            lambda: TNEW(token.token, token.key.spki, token.dh_key.public),
            lambda: SNEW(rng.choice(self._ids), smp_queue(), generate("ed25519").pkcs8),
        ]
        self.counts: Counter[str] = Counter()
        self._answers: asyncio.Queue[NtfServerTransmission] = asyncio.Queue()
        self.closed = asyncio.Event()
        self._client.connection.attach(self)

    def on_block(self, content: bytes) -> None:
        for answer in decode_replies(self._client.session, content):
            self._answers.put_nowait(answer)

    def on_writable(self) -> None: ...

    def on_closed(self) -> None:
        self.closed.set()

    def _transmission(self) -> bytes:
        rng, session = self._rng, self._client.session
        command = encode_command(session.version, rng.choice(self._commands)())
        if rng.random() < 0.3:
            command = mutate(command, rng)
        corr_id = rng.randbytes(24)
        authorized, sent = for_auth(session, corr_id, rng.choice(self._ids), command)
        key = rng.choice(self._keys)
        auth = b"" if key is None else self._client._authorize(key, corr_id, authorized)
        encoded = encode_client(session, sent, auth, None)
        if rng.random() < 0.1:
            changed = mutate(encoded[2:], rng)
            encoded = min(len(changed), 65535).to_bytes(2, "big") + changed
        return encoded if fits(session, encoded) else self._transmission()

    async def run(self) -> None:
        for _ in range(BLOCKS):
            sent = [self._transmission() for _ in range(self._rng.randrange(1, 4))]
            contents = pack(self._client.session, sent)
            if self._rng.random() < 0.1:
                contents = [mutate(content, self._rng)[:500] for content in contents]
                sent = contents  # a block that is no batch gets one answer
            self._client.connection.send_contents(contents)
            await self._expect(len(contents) if sent is contents else len(sent))

    async def _expect(self, least: int) -> None:
        """A block may have more transmissions than its mutation intended, but never none."""
        try:
            async with asyncio.timeout(ANSWERS):
                for _ in range(least):
                    self._count(await self._answers.get())
        except TimeoutError:
            raise Broken("a transmission without an answer") from None
        while not self._answers.empty():
            self._count(self._answers.get_nowait())

    def _count(self, answer: NtfServerTransmission) -> None:
        reply = answer.reply
        if not isinstance(reply, ERR):
            self.counts[type(reply).__name__] += 1
            return
        if reply.error is Simple.INTERNAL:
            raise Broken("ERR INTERNAL")
        self.counts[f"ERR {getattr(reply.error, 'value', type(reply.error).__name__)}"] += 1


async def run(router: Router, *, seed: int, rounds: int | None = None, seconds: float = 600) -> Counter[str]:
    """Fuzz for some rounds or seconds. Raises Broken. Returns how often each answer came."""
    end = time.monotonic() + seconds
    log, counts = Log(), Counter[str]()
    logging.getLogger().addHandler(log)
    try:
        honest = await (await router.device()).activate()
        kept = await honest.subscription()
        for number in itertools.count():
            if number == rounds or time.monotonic() > end:
                break
            rng = random.Random(f"{seed}:{number}")
            version = rng.randint(*NTF_RANGE)
            device = await router.device(versions=VersionRange(version, version))
            key_type = rng.choice(_KEYS[1:] if version == 1 else _KEYS)
            token = await device.activate(key_type=key_type)
            sub = await token.subscribe() if key_type != "ed448" else None  # too large for a block
            one = _Round(rng, device, token, sub.sub_id if isinstance(sub, IDSUB) else b"")
            try:
                await one.run()
                if log.errors:
                    raise Broken(f"the router logged: {log.errors[0]}")
                if await honest.do(TCHK()) != TKN(TokenStatus.ACTIVE) or await honest.do(SCHK(), kept) != SUB(
                    SubStatus.NEW
                ):
                    raise Broken("another device's token or subscription has changed")
            except Broken as broken:
                raise Broken(f"{broken}\n  version {version}, seed {seed}:{number}") from None
            counts += one.counts
            device.client.connection.abort()
    finally:
        logging.getLogger().removeHandler(log)
    return counts


@asynccontextmanager
async def a_router() -> AsyncIterator[Router]:
    """A router with a Redis of its own."""
    redis = start_server()
    try:
        with tempfile.TemporaryDirectory(prefix="weir-fuzz-") as name:
            directory = Path(name)
            init_identity(directory / "identity", "127.0.0.1")
            router = await Router.start(notifier_config(redis.url, directory / "identity", directory), directory)
            yield router
            await router.close()
    finally:
        discard(redis)


async def fuzz(seconds: float, seed: int) -> Counter[str]:
    async with a_router() as router:
        return await run(router, seed=seed, seconds=seconds)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.ntf")
    parser.add_argument("--seconds", type=float, default=60, help="length of the run (60)")
    parser.add_argument("--seed", type=int, default=random.randrange(2**32), help="seed of the run (random)")
    options = parser.parse_args(arguments)
    print(f"notification router: seed {options.seed}", flush=True)
    try:
        counts = uvloop.run(fuzz(options.seconds, options.seed))
    except Broken as broken:
        print(f"FAILED {broken}")
        return 1
    print("ok     " + ", ".join(f"{count} {name}" for name, count in counts.most_common()))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
