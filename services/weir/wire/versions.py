"""SMP and NTF protocol versions, and the feature that each introduced (protocol, "SMP procedure: version history")."""

from typing import NamedTuple


class VersionRange(NamedTuple):
    min: int
    max: int

    def compatible(self, other: "VersionRange") -> "VersionRange | None":
        """The intersection of two ranges, or None."""
        low, high = max(self.min, other.min), min(self.max, other.max)
        return VersionRange(low, high) if low <= high else None


BASIC = 6
AUTH_CMDS = 7  # X25519 authenticators; the session id is authorised but not sent
SENDING_PROXY = 8
SND_AUTH_KEY = 9  # SKEY
DELETED_EVENT = 10  # DELD
ENCRYPTED_BLOCK = 11
BLOCKED_ENTITY = 12
PROXY_HANDSHAKE = 14  # proxyServer in the client's hello
SHORT_LINKS = 15
SERVICE_CERTS = 16
NEW_NTF_CREDS = 17
CLIENT_NOTICES = 18
RCV_SERVICE = 19
NAMES = 20  # RSLV; this version is not offered

SMP_RANGE = VersionRange(BASIC, RCV_SERVICE)
SMP_LEGACY_RANGE = VersionRange(BASIC, BASIC)  # offered to clients that send no ALPN
SMP_PROXIED_RANGE = VersionRange(SENDING_PROXY, RCV_SERVICE)  # offered to clients of a proxy in PKEY

NTF_RANGE = VersionRange(1, 3)
NTF_LEGACY_RANGE = VersionRange(1, 1)
NTF_AUTH_BATCH = 2
NTF_INVALID_REASON = 3

SMP_ALPN = "smp/1"
NTF_ALPN = "ntf/1"
SMP_BLOCK_SIZE = 16384
NTF_BLOCK_SIZE = 512


def max_message_length(version: int) -> int:
    """The largest SEND body at a version."""
    if version >= ENCRYPTED_BLOCK:
        return 16048
    return 16064 if version >= SENDING_PROXY else 16088
