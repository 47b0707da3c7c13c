"""The stream without sockets: any cutting of the bytes gives the same blocks, and sessions never mix."""

import asyncio
import os
import random
import ssl
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weir.crypto.certificates import make_ca, make_online
from weir.crypto.pem import key_to_pem
from weir.transport import stream
from weir.transport.stream import TlsStream
from weir.transport.tls import client_context, server_context

BLOCK = 16384


def contexts() -> tuple[ssl.SSLContext, ssl.SSLContext]:
    ca = make_ca("ed25519")
    online = make_online(ca, "stream", "ed25519")
    return server_context((online.certificate, ca.certificate), key_to_pem(online.key), "smp/1"), client_context(
        "smp/1"
    )


SERVER, CLIENT = contexts()


class Wire(asyncio.Transport):
    """Keeps what is written until the test passes it on."""

    def __init__(self) -> None:
        self.written = bytearray()
        self.writes = 0
        self.closed = self.aborted = False

    def write(self, data: Any) -> None:
        self.written += data
        self.writes += 1

    def close(self) -> None:
        self.closed = True

    def abort(self) -> None:
        self.aborted = True

    def get_write_buffer_size(self) -> int:
        return 0

    def take(self) -> bytes:
        data = bytes(self.written)
        self.written.clear()
        return data


class End(TlsStream):
    __slots__ = ("__dict__",)

    def __init__(self, context: ssl.SSLContext, server: bool, block_size: int = BLOCK) -> None:
        super().__init__(block_size)
        self.context, self.server = context, server
        self.blocks: list[bytes] = []
        self.failure: ssl.SSLError | None = None
        self.wire = Wire()
        self.connection_made(self.wire)

    def _wrap(self, incoming: ssl.MemoryBIO, outgoing: ssl.MemoryBIO) -> ssl.SSLObject:
        return self.context.wrap_bio(incoming, outgoing, server_side=self.server)

    def _on_established(self, tls: ssl.SSLObject) -> None:
        self.blocks.clear()

    def _on_raw_block(self, block: bytes) -> None:
        self.blocks.append(block)

    def _on_tls_failure(self, error: ssl.SSLError) -> None:
        self.failure = error


def session(block_size: int = BLOCK) -> tuple[End, End]:
    client, server = End(CLIENT, False, block_size), End(SERVER, True, block_size)
    client._start()
    for _ in range(3):
        server.data_received(client.wire.take())
        client.data_received(server.wire.take())
    assert client._established and server._established
    return client, server


def nothing_left_behind() -> bool:
    return stream._bios.incoming.pending == 0 and stream._bios.outgoing.pending == 0


def blocks(count: int) -> list[bytes]:
    return [os.urandom(16) + bytes(BLOCK - 16) for _ in range(count)]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(1, 40000), max_size=12), st.integers(1, 4))
def test_any_cutting_gives_the_same_blocks(cuts: list[int], count: int) -> None:
    client, server = session()
    sent = blocks(count)
    client._send_blocks(sent)
    data = client.wire.take()
    for cut in cuts:
        server.data_received(data[:cut])
        data = data[cut:]
        assert nothing_left_behind()
        if not data:
            break
    if data:
        server.data_received(data)
    assert server.blocks == sent and nothing_left_behind()


def test_byte_by_byte_through_the_handshake() -> None:
    client, server = End(CLIENT, False), End(SERVER, True)
    client._start()
    for _ in range(3):
        for byte in client.wire.take():
            server.data_received(bytes([byte]))
        for byte in server.wire.take():
            client.data_received(bytes([byte]))
    assert client._established and server._established and nothing_left_behind()


@pytest.mark.parametrize("size", [1, 100, 8192, 16383])
def test_records_need_not_be_blocks(size: int) -> None:
    client, server = session()
    sent = blocks(3)
    data = b"".join(sent)
    client._send_blocks([data[at : at + size] for at in range(0, len(data), size)] if size > 1 else [data])
    server.data_received(client.wire.take())
    assert server.blocks == sent


@pytest.mark.parametrize("size", [1, 511, 512, 513, 5000, 16384])
def test_a_record_may_hold_many_small_blocks(size: int) -> None:
    """Blocks of 512 bytes (NTF): OpenSSL must not keep a part of a record until the next one arrives."""
    client, server = session(block_size=512)
    sent = [os.urandom(512) for _ in range(70)]
    data = b"".join(sent)
    client._send_blocks([data[at : at + size] for at in range(0, len(data), size)])
    server.data_received(client.wire.take())
    assert server.blocks == sent and nothing_left_behind()


def test_what_one_call_sends_is_one_write() -> None:
    client, _ = session()
    client.wire.writes = 0
    client._send_blocks(blocks(5))
    assert client.wire.writes == 1 and nothing_left_behind()


def test_sessions_never_mix() -> None:
    """Handshakes and blocks of many sessions, interleaved at random, in pieces."""
    rng = random.Random(7)
    pairs = [(End(CLIENT, False), End(SERVER, True)) for _ in range(20)]
    sent: list[list[bytes]] = [[] for _ in pairs]
    pipes: list[bytes] = [b""] * len(pairs)
    for client, _ in pairs:
        client._start()
    for _ in range(4000):
        number = rng.randrange(len(pairs))
        client, server = pairs[number]
        pipes[number] += client.wire.take()
        cut = rng.randrange(1, 20000)
        piece, pipes[number] = pipes[number][:cut], pipes[number][cut:]
        if piece:
            server.data_received(piece)
        back = server.wire.take()
        if back:
            client.data_received(back)
        if client._established and rng.random() < 0.05:
            block = blocks(1)
            client._send_blocks(block)
            sent[number] += block
        assert nothing_left_behind()
    for number, (client, server) in enumerate(pairs):
        rest = pipes[number] + client.wire.take()
        if rest:
            server.data_received(rest)
        assert server.blocks == sent[number] and server.failure is None
    assert sum(map(len, sent)) > 100


def test_records_behind_the_handshake_are_read() -> None:
    """The client's first block may come in one piece with its Finished."""
    client, server = End(CLIENT, False), End(SERVER, True)
    client._start()
    server.data_received(client.wire.take())
    client.data_received(server.wire.take())
    sent = blocks(1)
    client._send_blocks(sent)
    server.data_received(client.wire.take())
    assert server._established and server.blocks == sent


def test_goodbye() -> None:
    client, server = session()
    sent = blocks(1)
    client._send_blocks(sent)
    client.close()
    assert client.wire.closed
    server.data_received(client.wire.take())
    assert server.blocks == sent and server.wire.closed and server.failure is None
    server._send_blocks(blocks(1))
    client.data_received(server.wire.take())
    assert client.blocks == [] and nothing_left_behind()


@pytest.mark.parametrize("at", [0, 1, 4, 5, 100, 16405])
def test_a_changed_byte_ends_the_session(at: int) -> None:
    client, server = session()
    client._send_blocks(blocks(1))
    data = bytearray(client.wire.take())
    data[at] ^= 0x40
    server.data_received(bytes(data) + bytes(20000))
    assert server.failure is not None and server.wire.closed and server.blocks == []
    assert nothing_left_behind()


def test_after_a_failure_others_go_on() -> None:
    good_client, good_server = session()
    _, server = session()
    server.data_received(bytes.fromhex("1703030014") + bytes(20))
    assert server.failure is not None
    sent = blocks(2)
    good_client._send_blocks(sent)
    good_server.data_received(good_client.wire.take())
    assert good_server.blocks == sent


def test_abort() -> None:
    client, _ = session()
    client.abort()
    assert client.wire.aborted and client.closing
    client.connection_lost(None)
    client.close()
    client.pause_reading()
    client.resume_reading()
    assert client.buffered == 0
