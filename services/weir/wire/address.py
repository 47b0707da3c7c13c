"""Server addresses: `smp://<fingerprint>[:<basic auth>]@host1,host2[:port]` (protocol, "SMP queue URI").

The fingerprint is the SHA-256 of the CA certificate, base64url.
"""

import base64
import binascii
import ipaddress
import re
from dataclasses import dataclass

from weir.wire.commands import ServerHost

DEFAULT_SMP_PORT = 5223
DEFAULT_NTF_PORT = 443

_IPV4 = re.compile(rb"(\d{1,10})\.(\d{1,10})\.(\d{1,10})\.(\d{1,10})")
_IPV6 = re.compile(rb"\[([^\]]+)\]|([0-9A-Fa-f:]+)")
_ONION = re.compile(rb"[a-z0-9]*\.onion")
_DOMAIN = re.compile(rb"[^:#,;/ \n\r\t\[\]]+")
_ADDRESS = re.compile(rb"(smp|ntf)://([A-Za-z0-9_-]+={0,2})(?::([^@]+))?@(.+)", re.DOTALL)
_AUTH = re.compile(rb"[\x21-\x7e\xa1-\xac\xae-\xff]+")
_PORT = re.compile(rb":(\d{1,5})")


def _take_host(text: bytes) -> tuple[bytes, int] | None:
    """The host that `text` begins with, in its canonical form, and where it ends: IPv4, IPv6, onion or name."""
    found = _IPV4.match(text)
    if found and all(int(part) < 256 for part in found.groups()):
        return b".".join(b"%d" % int(part) for part in found.groups()), found.end()
    found = _IPV6.match(text)
    if found:
        try:
            inside = found[1] or found[2]
            return str(ipaddress.IPv6Address(inside.decode("latin-1"))).encode(), found.end()
        except ValueError:
            pass
    found = _ONION.match(text)
    if found:
        return found[0], found.end()
    found = _DOMAIN.match(text)
    if found and not found[0].endswith(b".onion"):
        return found[0], found.end()
    return None


def parse_host(text: bytes) -> bytes | None:
    taken = _take_host(text)
    return taken[0] if taken and taken[1] == len(text) else None


def _fingerprint(text: bytes) -> bytes | None:
    bare = text.rstrip(b"=")
    try:
        value = base64.urlsafe_b64decode(bare + b"=" * (-len(bare) % 4))
    except binascii.Error:
        return None
    return value if len(value) == 32 else None


@dataclass(frozen=True, slots=True)
class SmpAddress:
    """`fingerprint` is 32 bytes; `port` None is the scheme's default."""

    fingerprint: bytes
    hosts: tuple[str, ...]
    port: int | None = None
    basic_auth: bytes | None = None
    scheme: str = "smp"

    @staticmethod
    def parse(text: str) -> "SmpAddress | None":
        """None when it is not an address."""
        try:
            found = _ADDRESS.fullmatch(text.encode("latin-1"))
        except UnicodeEncodeError:
            return None
        if found is None:
            return None
        scheme, key_hash, auth, rest = found.groups()
        fingerprint = _fingerprint(key_hash)
        if fingerprint is None or (auth is not None and not _is_auth(auth)):
            return None
        hosts: list[str] = []
        at = 0
        while True:
            taken = _take_host(rest[at:])
            if taken is None:
                return None
            hosts.append(taken[0].decode("latin-1"))
            at += taken[1]
            if rest[at : at + 1] != b",":
                break
            at += 1
        port = None
        if at < len(rest):
            number = _PORT.fullmatch(rest, at)
            if number is None or not 0 < int(number[1]) < 65536:
                return None
            port = int(number[1])
        return SmpAddress(fingerprint, tuple(hosts), port, auth, scheme.decode())

    def __str__(self) -> str:
        key_hash = base64.urlsafe_b64encode(self.fingerprint).decode()
        auth = "" if self.basic_auth is None else ":" + self.basic_auth.decode("latin-1")
        hosts = ",".join(f"[{host}]" if ":" in host else host for host in self.hosts)
        port = "" if self.port is None else f":{self.port}"
        return f"{self.scheme}://{key_hash}{auth}@{hosts}{port}"

    @property
    def server_host(self) -> ServerHost:
        """The address as it goes into PRXY and SNEW."""
        port = b"" if self.port is None else b"%d" % self.port
        return ServerHost(tuple(host.encode("latin-1") for host in self.hosts), port, self.fingerprint)

    @property
    def effective_port(self) -> int:
        return self.port or (DEFAULT_SMP_PORT if self.scheme == "smp" else DEFAULT_NTF_PORT)


def _is_auth(value: bytes) -> bool:
    return _AUTH.fullmatch(value) is not None and not any(char in value for char in b":/")


def format_server(server: ServerHost) -> bytes:
    """A router's address as text, from what PRXY and SNEW carry."""
    hosts = b",".join(b"[%s]" % host if b":" in host else host for host in server.hosts)
    port = b":" + server.port if server.port else b""
    return b"smp://" + base64.urlsafe_b64encode(server.key_hash) + b"@" + hosts + port
