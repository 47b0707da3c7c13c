"""Queues with short links."""

import os
from hashlib import sha3_384

from tests.router.fleet import Peer, Queue
from weir.crypto.keys import dh, generate
from weir.wire.smp import commands as cmd
from weir.wire.smp.commands import ContactReq, LinkData, MessagingReq
from weir.wire.smp.replies import IDS

DATA = LinkData(b"fixed data", b"user data")
NEWER = LinkData(b"fixed data", b"updated user data")


async def link_queue(peer: Peer, link_id: bytes | None) -> Queue:
    corr_id = os.urandom(24)
    snd_id = sha3_384(corr_id).digest()[:24]
    key, dh_key = generate("ed25519"), generate("x25519")
    request = MessagingReq((snd_id, DATA)) if link_id is None else ContactReq((link_id, (snd_id, DATA)))
    ids = await peer.do(cmd.NEW(key.spki, dh_key.public, queue_req=request), b"", key, corr_id=corr_id)
    assert isinstance(ids, IDS), ids
    return Queue(ids, key, dh(ids.dh_key, dh_key.private))
