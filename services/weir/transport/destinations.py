"""The addresses that clients may make a router dial: those that lead to the public Internet, and not into the
operator's network. Relays of the proxy and push servers of devices are dialled only after this check.

Some IPv6 addresses contain an IPv4 address, and the network or the kernel forwards to that one: NAT64, 6to4 and
IPv4-mapped addresses. They are judged by the IPv4 address. In the local-use NAT64 prefix (64:ff9b:1::/48, RFC 8215)
each network chooses where the IPv4 address stands, so those addresses are never dialled.
"""

from __future__ import annotations

import asyncio
import socket
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address

_NAT64 = IPv6Network("64:ff9b::/96")
_UNICAST = IPv6Network("2000::/3")  # the only range that global IPv6 addresses come from
_DOCUMENTATION = IPv6Network("3fff::/20")  # Python 3.11 does not know it yet


async def resolve(host: str, port: int, *, allow_local: bool) -> tuple[str, ...]:
    """Return the host's addresses that may be dialled; none if all of them lead elsewhere.

    The caller dials these addresses and never the name: the name may have other addresses a moment later. Raises
    OSError if there is no address at all, ValueError for a name that DNS cannot encode.
    """
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    addresses = dict.fromkeys(str(info[4][0]) for info in found)
    return tuple(address for address in addresses if allow_local or is_public(address))


def is_public(text: str) -> bool:
    """Whether the address leads to the public Internet."""
    address = ip_address(text)
    if isinstance(address, IPv6Address):
        inner = _embedded(address)
        if inner is None:
            return address in _UNICAST and address not in _DOCUMENTATION and address.is_global
        address = inner
    return address.is_global and not address.is_multicast


def _embedded(address: IPv6Address) -> IPv4Address | None:
    """The IPv4 address that packets to this address are forwarded to."""
    if address in _NAT64:
        return IPv4Address(int(address) & 0xFFFFFFFF)
    return address.ipv4_mapped or address.sixtofour
