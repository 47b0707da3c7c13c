"""`weir bench floor`: the CPU time of the cryptography in one cycle (SEND → MSG → ACK), and of nothing else.

A tight loop does the router's side of a cycle: TLS records, block encryption, authenticators, message encryption. A
router on the same primitives cannot need less CPU time, so the floor shows how much of a router's cost is its own.
"""

import os
import ssl
from dataclasses import dataclass
from time import process_time

from weir.crypto.authenticator import authenticate, verify
from weir.crypto.block import ChainKey, init_chains, open_block, seal_block
from weir.crypto.certificates import make_ca, make_online
from weir.crypto.keys import dh, dh_raw, generate
from weir.crypto.pem import key_to_pem
from weir.transport.tls import client_context, server_context, session_id
from weir.wire.smp.codec import encode_command, encode_reply
from weir.wire.smp.commands import ACK, SEND
from weir.wire.smp.message import encrypt_message
from weir.wire.smp.replies import OK
from weir.wire.smp.session import Session
from weir.wire.smp.transmission import encode_client, encode_msg, encode_server, for_auth
from weir.wire.versions import SMP_ALPN, SMP_BLOCK_SIZE, SMP_RANGE

_BATCH = 100


@dataclass(frozen=True)
class FloorOptions:
    size: int = 16000  # bytes of a message
    seconds: float = 3.0  # CPU time of the measurement


@dataclass(frozen=True)
class FloorResult:
    cycles_per_cpu_s: float
    us_per_cycle: float
    tls_in_us: float  # per TLS record
    tls_out_us: float
    open_block_us: float
    seal_block_us: float
    verify_send_us: float
    verify_ack_us: float
    encrypt_message_us: float


class _Pair:
    """A TLS session with both ends in this process, and the keys of its block encryption."""

    def __init__(self, server: ssl.SSLContext, client: ssl.SSLContext) -> None:
        self.to_server, self.to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.server = server.wrap_bio(self.to_server, self.to_client, server_side=True)
        self.client = client.wrap_bio(self.to_client, self.to_server)
        for side in (self.client, self.server, self.client, self.server):
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                continue
        self.session = Session(session_id(self.server), SMP_RANGE.max)
        own, peer = generate("x25519"), generate("x25519")
        secret = dh_raw(peer.public, own.private)
        self.snd_chain, self.rcv_chain = init_chains(self.session.session_id, secret)
        _, self.peer_snd_chain = init_chains(self.session.session_id, secret)
        queue = generate("x25519")
        self.secret = dh(queue.public, own.private)
        self.entity_id = os.urandom(24)

    def transmissions(self, command: bytes, count: int) -> list[tuple[bytes, bytes, bytes]]:
        """Send `count` commands from the peer through TLS. Return (authenticator, nonce, authorised bytes) of each."""
        sent = []
        for _ in range(count):
            corr_id = os.urandom(24)
            authorized, to_send = for_auth(self.session, corr_id, self.entity_id, command)
            auth = authenticate(self.secret, corr_id, authorized)
            content = b"\x01" + encode_client(self.session, to_send, auth, None)
            self.client.write(seal_block(self.peer_snd_chain, content))
            sent.append((auth, corr_id, authorized))
        return sent


def run_floor(options: FloorOptions) -> FloorResult:
    ca = make_ca("ed25519")
    online = make_online(ca, "floor", "ed25519")
    server = server_context((online.certificate, ca.certificate), key_to_pem(online.key), SMP_ALPN)
    client = client_context(SMP_ALPN)
    sender, recipient = _Pair(server, client), _Pair(server, client)
    spent, cycles = 0.0, 0
    while spent < options.seconds:
        spent += _cycles(sender, recipient, options.size, _BATCH)
        cycles += _BATCH
    parts = _parts(sender, options.size)
    return FloorResult(cycles / spent, spent / cycles * 1e6, *parts)


def _cycles(sender: _Pair, recipient: _Pair, size: int, count: int) -> float:
    """Return the CPU seconds of the router's side of `count` cycles. The peers' work is not counted."""
    version = sender.session.version
    body = os.urandom(size)
    message_secret = generate("x25519").private
    sends = sender.transmissions(encode_command(version, SEND(False, body)), count)
    acks = recipient.transmissions(encode_command(version, ACK(bytes(24))), count)
    ok = encode_reply(version, OK())
    start = process_time()
    for (auth, nonce, authorized), (ack_auth, ack_nonce, ack_authorized) in zip(sends, acks, strict=True):
        open_block(sender.rcv_chain, sender.server.read(SMP_BLOCK_SIZE))
        verify(sender.secret, nonce, auth, authorized)
        encrypted = encrypt_message(message_secret, nonce, 0, False, body)
        reply = b"\x01" + encode_server(sender.session, nonce, sender.entity_id, ok)
        sender.server.write(seal_block(sender.snd_chain, reply))
        message = b"\x01" + encode_msg(recipient.session, b"", recipient.entity_id, nonce, encrypted)
        recipient.server.write(seal_block(recipient.snd_chain, message))
        open_block(recipient.rcv_chain, recipient.server.read(SMP_BLOCK_SIZE))
        verify(recipient.secret, ack_nonce, ack_auth, ack_authorized)
        reply = b"\x01" + encode_server(recipient.session, ack_nonce, recipient.entity_id, ok)
        recipient.server.write(seal_block(recipient.snd_chain, reply))
        sender.to_client.read()
        recipient.to_client.read()
    return process_time() - start


def _parts(pair: _Pair, size: int) -> tuple[float, ...]:
    """Measure each part alone, in microseconds."""
    count = 2 * _BATCH
    version = pair.session.version
    body = os.urandom(size)
    block = os.urandom(SMP_BLOCK_SIZE)
    key = os.urandom(32)
    nonce = os.urandom(24)

    def timed(start: float) -> float:
        return (process_time() - start) / count * 1e6

    sends = pair.transmissions(encode_command(version, SEND(False, body)), count)
    start = process_time()
    blocks = [pair.server.read(SMP_BLOCK_SIZE) for _ in range(count)]
    tls_in = timed(start)
    start = process_time()
    for one in blocks:
        open_block(pair.rcv_chain, one)
    opened = timed(start)
    start = process_time()
    for auth, corr_id, authorized in sends:
        verify(pair.secret, corr_id, auth, authorized)
    verified_send = timed(start)
    acks = pair.transmissions(encode_command(version, ACK(bytes(24))), count)
    for _ in range(count):
        open_block(pair.rcv_chain, pair.server.read(SMP_BLOCK_SIZE))
    start = process_time()
    for auth, corr_id, authorized in acks:
        verify(pair.secret, corr_id, auth, authorized)
    verified_ack = timed(start)
    start = process_time()
    for _ in range(count):
        pair.server.write(block)
        pair.to_client.read()
    tls_out = timed(start)
    chain = ChainKey(key)
    start = process_time()
    for _ in range(count):
        seal_block(chain, body)
    sealed = timed(start)
    start = process_time()
    for _ in range(count):
        encrypt_message(key, nonce, 0, False, body)
    return tls_in, tls_out, opened, sealed, verified_send, verified_ack, timed(start)
