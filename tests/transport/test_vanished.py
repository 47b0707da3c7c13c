"""Clients that vanish without a word: their network is gone, and nothing tells the router."""

from __future__ import annotations

import asyncio
import ctypes
import socket
import struct
from collections.abc import Awaitable, Callable

import pytest

from tests.transport.peer import Router
from weir.client.smp import SmpClient
from weir.transport import server

_SO_ATTACH_FILTER = 26
_DROP_ALL = struct.pack("HBBI", 0x06, 0, 0, 0)  # a packet filter of one instruction: keep 0 bytes


def vanish(client: SmpClient) -> None:
    """Let no packet reach the client any more. Its kernel answers nothing, not even that it is there."""
    transport = client.connection._transport
    assert transport is not None
    program = ctypes.create_string_buffer(_DROP_ALL)
    argument = struct.pack("HP", 1, ctypes.addressof(program))
    transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, argument)


@pytest.mark.all(reason="waits until the kernel gives a connection up")
@pytest.mark.parametrize("under_way", [False, True])
async def test_a_client_that_vanished_is_noticed(
    start: Callable[..., Awaitable[Router]], monkeypatch: pytest.MonkeyPatch, under_way: bool
) -> None:
    """With a message under way, which keepalive does not watch, as soon as without."""
    for name, value in (("IDLE", 1), ("INTERVAL", 1), ("COUNT", 2)):
        monkeypatch.setattr(server, f"_KEEPALIVE_{name}", value)
    router = await start()
    client = await SmpClient.connect(router.address)
    await client.ping()
    (connection,) = router.listener.connections.values()
    vanish(client)
    if under_way:
        connection.send_contents([b"a message"])
    async with asyncio.timeout(20):
        while router.listener.connections:
            await asyncio.sleep(0.05)
    client.connection.abort()
