"""A notifier of a queue, and its notifications."""

from tests.router.fleet import Peer, Queue
from weir.crypto.keys import KeyPair, dh, generate
from weir.wire.smp import commands as cmd
from weir.wire.smp.message import NMsgMeta, decrypt_nmsg_meta
from weir.wire.smp.replies import NID, NMSG


class Notifier:
    def __init__(self, ntf_id: bytes, key: KeyPair, secret: bytes) -> None:
        self.ntf_id = ntf_id
        self.key = key
        self.secret = secret

    def open(self, message: NMSG) -> NMsgMeta | None:
        return decrypt_nmsg_meta(self.secret, message.nonce, message.meta)


async def nkey(peer: Peer, queue: Queue) -> Notifier:
    key, dh_key = generate("ed25519"), generate("x25519")
    reply = await peer.do(cmd.NKEY(key.spki, dh_key.public), queue.rcv_id, queue.rcv_key)
    assert isinstance(reply, NID)
    return Notifier(reply.ntf_id, key, dh(reply.dh_key, dh_key.private))


async def nmsg(peer: Peer, notifier: Notifier) -> NMsgMeta:
    event = await peer.event()
    assert event.entity_id == notifier.ntf_id and isinstance(event.reply, NMSG), event
    meta = notifier.open(event.reply)
    assert meta is not None
    return meta
