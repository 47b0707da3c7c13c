"""SOCKS5 (RFC 1928, 1929): connect to a router through a proxy. The proxy resolves the name, as onion hosts need."""

import asyncio
import ipaddress
import socket
from typing import NamedTuple

from weir.config.kinds import SOCKS_FORM

_DEFAULT_HOST, _DEFAULT_PORT = "127.0.0.1", 9050
_VERSION = 5
_NO_AUTH, _USER_PASSWORD = 0, 2
_ADDRESS_SIZES = {1: 4, 4: 16}
_REFUSALS = {
    1: "general failure",
    2: "not allowed",
    3: "network unreachable",
    4: "host unreachable",
    5: "connection refused",
    6: "timed out",
    7: "command not supported",
    8: "address type not supported",
}


class SocksProxy(NamedTuple):
    """`credentials` (user, password) need not be secret: Tor uses separate circuits for different credentials."""

    host: str
    port: int
    credentials: tuple[bytes, bytes] | None = None


def parse_socks(setting: str) -> SocksProxy:
    """The proxy that a setting of the kind SOCKS names."""
    match = SOCKS_FORM.fullmatch(setting)
    assert match is not None, "the configuration has checked the form"
    host, user = (match["host"] or _DEFAULT_HOST).strip("[]"), match["user"]
    credentials = None if user is None else (user.encode(), match["password"].encode())
    return SocksProxy(host, int(match["port"] or _DEFAULT_PORT), credentials)


async def dial(proxy: SocksProxy, host: str, port: int) -> socket.socket:
    """Return a socket that is connected to host and port through the proxy. Raises OSError."""
    loop = asyncio.get_running_loop()
    infos = await loop.getaddrinfo(proxy.host, proxy.port, type=socket.SOCK_STREAM)
    family, kind, protocol, _, address = infos[0]
    sock = socket.socket(family, kind, protocol)
    try:
        sock.setblocking(False)
        await loop.sock_connect(sock, address)
        await _negotiate(sock, proxy.credentials)
        await loop.sock_sendall(sock, bytes([_VERSION, 1, 0]) + _destination(host) + port.to_bytes(2, "big"))
        await _reply(sock)
    except BaseException:
        sock.close()
        raise
    return sock


async def _negotiate(sock: socket.socket, credentials: tuple[bytes, bytes] | None) -> None:
    loop = asyncio.get_running_loop()
    method = _NO_AUTH if credentials is None else _USER_PASSWORD
    await loop.sock_sendall(sock, bytes([_VERSION, 1, method]))
    if await _read(sock, 2) != bytes([_VERSION, method]):
        raise OSError(None, "the SOCKS proxy offers no usable authentication")
    if credentials is None:
        return
    user, password = credentials
    await loop.sock_sendall(sock, bytes([1, len(user)]) + user + bytes([len(password)]) + password)
    if (await _read(sock, 2))[1] != 0:
        raise OSError(None, "the SOCKS proxy refuses the credentials")


def _destination(host: str) -> bytes:
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        name = host.encode("ascii", "strict")
        return bytes([3, len(name)]) + name
    return bytes([1 if address.version == 4 else 4]) + address.packed


async def _reply(sock: socket.socket) -> None:
    version, code, _, kind = await _read(sock, 4)
    if version != _VERSION or code != 0:
        raise OSError(None, f"the SOCKS proxy cannot connect: {_REFUSALS.get(code, 'unknown reason')}")
    size = _ADDRESS_SIZES.get(kind)
    if size is None:
        size = (await _read(sock, 1))[0]
    await _read(sock, size + 2)


async def _read(sock: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        chunk = await asyncio.get_running_loop().sock_recv(sock, size - len(data))
        if not chunk:
            raise OSError(None, "the SOCKS proxy closed the connection")
        data += chunk
    return data
