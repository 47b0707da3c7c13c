"""Server addresses: `smp://<fingerprint>[:<basic auth>]@host1,host2[:port]` (protocol, "SMP queue URI"). An NTF address
may have a query, in which a router publishes its key for Web Push.

The fingerprint is the SHA-256 of the CA certificate, base64url.
"""

import base64
import binascii
import ipaddress
import re
from dataclasses import dataclass
from typing import NamedTuple

DEFAULT_SMP_PORT = 5223
DEFAULT_NTF_PORT = 443

_IPV4 = re.compile(rb"(\d{1,10})\.(\d{1,10})\.(\d{1,10})\.(\d{1,10})")
_IPV6 = re.compile(rb"\[([^\]]+)\]|([0-9A-Fa-f:]+)")
_ONION = re.compile(rb"[a-z0-9]*\.onion")
_DOMAIN = re.compile(rb"[^:#,;/ \n\r\t\[\]]+")
_ADDRESS = re.compile(rb"(smp|ntf)://([A-Za-z0-9_-]+={0,2})(?::([^@]+))?@(.+)", re.DOTALL)
_AUTH = re.compile(rb"[\x21-\x7e\xa1-\xac\xae-\xff]+")
_PORT = re.compile(rb":(\d{1,5})")


class ServerHost(NamedTuple):
    """A router's address as PRXY and SNEW carry it: hosts, port and the CA certificate's fingerprint."""

    hosts: tuple[bytes, ...]
    port: bytes
    key_hash: bytes


def _ipv6(address: ipaddress.IPv6Address) -> bytes:
    # Python 3.13 and later write the last four bytes of a mapped IPv4 address as IPv4, which _IPV6 does not read.
    if address.ipv4_mapped is not None:
        value = int(address.ipv4_mapped)
        return b"::ffff:%x:%x" % (value >> 16, value & 0xFFFF)
    return str(address).encode()


def _match_host(text: bytes) -> tuple[bytes, int] | None:
    """Parse the host at the start of `text` (IPv4, IPv6, onion or name). Return its canonical form and its length."""
    match = _IPV4.match(text)
    if match and all(int(part) < 256 for part in match.groups()):
        return b".".join(b"%d" % int(part) for part in match.groups()), match.end()
    match = _IPV6.match(text)
    if match:
        try:
            inside = match[1] or match[2]
            return _ipv6(ipaddress.IPv6Address(inside.decode("latin-1"))), match.end()
        except ValueError:
            pass
    match = _ONION.match(text)
    if match:
        return match[0], match.end()
    match = _DOMAIN.match(text)
    if match and not match[0].endswith(b".onion"):
        return match[0], match.end()
    return None


def parse_host(text: bytes) -> bytes | None:
    host = _match_host(text)
    return host[0] if host and host[1] == len(text) else None


def _fingerprint(text: bytes) -> bytes | None:
    bare = text.rstrip(b"=")
    try:
        value = base64.urlsafe_b64decode(bare + b"=" * (-len(bare) % 4))
    except binascii.Error:
        return None
    return value if len(value) == 32 else None


@dataclass(frozen=True, slots=True)
class SmpAddress:
    """`fingerprint` has 32 bytes. A `port` of None stands for the default port of the scheme. Only an NTF address has a
    `query`: the text after `?`.
    """

    fingerprint: bytes
    hosts: tuple[str, ...]
    port: int | None = None
    basic_auth: bytes | None = None
    scheme: str = "smp"
    query: str = ""

    @staticmethod
    def parse(text: str) -> "SmpAddress | None":
        """Parse an address; None if the text is not an address."""
        try:
            match = _ADDRESS.fullmatch(text.encode("latin-1"))
        except UnicodeEncodeError:
            return None
        if match is None:
            return None
        scheme, key_hash, auth, rest = match.groups()
        fingerprint = _fingerprint(key_hash)
        if fingerprint is None or (auth is not None and not _is_auth(auth)):
            return None
        query = b""
        if scheme == b"ntf":
            rest, _, query = rest.partition(b"?")
        hosts: list[str] = []
        at = 0
        while True:
            host = _match_host(rest[at:])
            if host is None:
                return None
            hosts.append(host[0].decode("latin-1"))
            at += host[1]
            if rest[at : at + 1] != b",":
                break
            at += 1
        port = None
        if at < len(rest):
            number = _PORT.fullmatch(rest, at)
            if number is None or not 0 < int(number[1]) < 65536:
                return None
            port = int(number[1])
        return SmpAddress(fingerprint, tuple(hosts), port, auth, scheme.decode(), query.decode("latin-1"))

    def __str__(self) -> str:
        key_hash = base64.urlsafe_b64encode(self.fingerprint).decode()
        auth = "" if self.basic_auth is None else ":" + self.basic_auth.decode("latin-1")
        hosts = ",".join(f"[{host}]" if ":" in host else host for host in self.hosts)
        port = "" if self.port is None else f":{self.port}"
        return f"{self.scheme}://{key_hash}{auth}@{hosts}{port}" + (f"?{self.query}" if self.query else "")

    @property
    def server_host(self) -> ServerHost:
        """The address in the form that PRXY and SNEW carry."""
        port = b"" if self.port is None else b"%d" % self.port
        return ServerHost(tuple(host.encode("latin-1") for host in self.hosts), port, self.fingerprint)

    @property
    def effective_port(self) -> int:
        return self.port or (DEFAULT_SMP_PORT if self.scheme == "smp" else DEFAULT_NTF_PORT)


def _is_auth(value: bytes) -> bool:
    return _AUTH.fullmatch(value) is not None and not any(char in value for char in b":/")


def format_server(server: ServerHost) -> bytes:
    """Format an address that PRXY or SNEW carried."""
    hosts = b",".join(b"[%s]" % host if b":" in host else host for host in server.hosts)
    port = b":" + server.port if server.port else b""
    return b"smp://" + base64.urlsafe_b64encode(server.key_hash) + b"@" + hosts + port
