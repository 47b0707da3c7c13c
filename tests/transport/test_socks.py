"""Through a SOCKS5 proxy: what is asked of it, and every way it may refuse."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from tests.transport.peer import Router
from weir.client.smp import SmpClient
from weir.transport.client import ConnectError
from weir.transport.socks import SocksProxy, dial
from weir.wire.errors import BrokerErrorTag

Talk = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def proxy(talk: Talk) -> AsyncIterator[SocksProxy]:
    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await talk(reader, writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    try:
        yield SocksProxy("127.0.0.1", server.sockets[0].getsockname()[1])
    finally:
        server.close()


async def copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(65536):
        writer.write(data)
        await writer.drain()
    writer.close()


def script(*answers: tuple[bytes, bytes]) -> Talk:
    """(what must be heard, what is answered), then silence."""

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for heard, answer in answers:
            assert await reader.readexactly(len(heard)) == heard
            writer.write(answer)
        await writer.drain()

    return talk


GREETING = (b"\x05\x01\x00", b"\x05\x00")
NAME = b"\x05\x01\x00\x03\x0bexample.org\x14\x67"


async def test_router_behind_a_proxy(router: Router) -> None:
    asked: list[bytes] = []

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readexactly(3)
        writer.write(b"\x05\x00")
        head = await reader.readexactly(5)
        asked.append(await reader.readexactly(head[4]))
        await reader.readexactly(2)
        writer.write(b"\x05\x00\x00\x03\x04name\x00\x00")
        there, back = await asyncio.open_connection("127.0.0.1", router.port)
        await asyncio.gather(copy(reader, back), copy(there, writer))

    async with proxy(talk) as socks:
        address = replace(router.address, hosts=("abcdef.onion",))
        async with await SmpClient.connect(address, socks=socks) as client:
            await client.ping()
    assert asked == [b"abcdef.onion"]


@pytest.mark.parametrize(
    ("host", "asked"),
    [
        ("example.org", NAME),
        ("192.0.2.1", b"\x05\x01\x00\x01\xc0\x00\x02\x01\x14\x67"),
        ("2001:db8::1", b"\x05\x01\x00\x04" + bytes.fromhex("20010db8000000000000000000000001") + b"\x14\x67"),
    ],
)
async def test_destinations(host: str, asked: bytes) -> None:
    async with proxy(script(GREETING, (asked, b"\x05\x00\x00\x01" + bytes(6)))) as socks:
        (await dial(socks, host, 5223)).close()


async def test_credentials() -> None:
    transcript = script(
        (b"\x05\x01\x02", b"\x05\x02"), (b"\x01\x04user\x02pw", b"\x01\x00"), (NAME, b"\x05\x00\x00\x04" + bytes(18))
    )
    async with proxy(transcript) as socks:
        (await dial(socks._replace(credentials=(b"user", b"pw")), "example.org", 5223)).close()


@pytest.mark.parametrize(
    ("transcript", "line"),
    [
        (script((b"\x05\x01\x00", b"\x05\xff")), "the SOCKS proxy offers no usable authentication"),
        (script((b"\x05\x01\x00", b"HTTP")), "the SOCKS proxy offers no usable authentication"),
        (
            script(GREETING, (NAME, b"\x05\x05\x00\x01" + bytes(6))),
            "the SOCKS proxy cannot connect: connection refused",
        ),
        (script(GREETING, (NAME, b"\x05\x63\x00\x01" + bytes(6))), "the SOCKS proxy cannot connect: unknown reason"),
        (script(GREETING), "the SOCKS proxy closed the connection"),
        (script(GREETING, (NAME, b"\x05\x00")), "the SOCKS proxy closed the connection"),
    ],
)
async def test_refusals(router: Router, transcript: Talk, line: str) -> None:
    async with proxy(transcript) as socks:
        with pytest.raises(ConnectError) as failure:
            await SmpClient.connect(replace(router.address, hosts=("example.org",), port=5223), socks=socks)
    assert failure.value.error is BrokerErrorTag.NETWORK
    assert str(failure.value) == f"NETWORK: {line}"


async def test_wrong_credentials() -> None:
    async with proxy(script((b"\x05\x01\x02", b"\x05\x02"), (b"\x01\x01u\x01p", b"\x01\x01"))) as socks:
        with pytest.raises(OSError, match="refuses the credentials"):
            await dial(socks._replace(credentials=(b"u", b"p")), "example.org", 5223)
