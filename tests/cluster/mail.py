"""python -m tests.cluster.mail put|take STATE ADDRESS [HOST:PORT]: mail left in a queue, fetched by a later process.

`put` makes a queue and sends three messages to it; STATE keeps the keys. `take` subscribes and receives them in order.
"""

from __future__ import annotations

import asyncio
import json
import sys
from dataclasses import replace
from pathlib import Path

from weir.client.smp import SmpClient
from weir.crypto.keys import dh, generate, key_pair
from weir.wire.address import SmpAddress
from weir.wire.smp.commands import ACK, NEW, SEND, SKEY, SUB, MessagingReq
from weir.wire.smp.message import RcvMsgBody, decrypt_message
from weir.wire.smp.replies import IDS, MSG, OK

BODIES = [b"first", b"second", b"third"]
LIMIT = 20.0


async def connect(address: str, at: str | None) -> SmpClient:
    parsed = SmpAddress.parse(address)
    assert parsed is not None
    if at is not None:
        host, port = at.rsplit(":", 1)
        parsed = replace(parsed, hosts=(host,), port=int(port))
    return await SmpClient.connect(parsed, timeout=LIMIT, reply_timeout=LIMIT)


async def put(state: Path, address: str, at: str | None) -> None:
    key, dh_key, sender = generate("x25519"), generate("x25519"), generate("x25519")
    async with await connect(address, at) as client:
        made = await client.send(NEW(key.spki, dh_key.public, None, False, MessagingReq()), b"", key)
        assert isinstance(made, IDS), made
        assert await client.send(SKEY(sender.spki), made.snd_id, sender) == OK()
        for body in BODIES:
            assert await client.send(SEND(False, body), made.snd_id, sender) == OK()
    secret = dh(made.dh_key, dh_key.private)
    state.write_text(json.dumps([made.rcv_id.hex(), key.private.hex(), secret.hex()]))


async def take(state: Path, address: str, at: str | None) -> None:
    rcv_id, private, secret = (bytes.fromhex(part) for part in json.loads(state.read_text()))
    key = key_pair("x25519", private)
    async with await connect(address, at) as client:
        reply: object = await client.send(SUB(), rcv_id, key)
        for expected in BODIES:
            if not isinstance(reply, MSG):
                async with asyncio.timeout(LIMIT):
                    reply = (await client.events.get()).reply
            assert isinstance(reply, MSG), reply
            message = decrypt_message(secret, reply.msg_id, reply.body)
            assert isinstance(message, RcvMsgBody)
            assert message.body == expected, (message.body, expected)
            reply = await client.send(ACK(reply.msg_id), rcv_id, key)
    print("ok")


if __name__ == "__main__":
    verb, path, where, *rest = sys.argv[1:]
    asyncio.run({"put": put, "take": take}[verb](Path(path), where, rest[0] if rest else None))
