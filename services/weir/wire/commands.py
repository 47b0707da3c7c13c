"""Every SMP client command, one class each, named as on the wire.

Keys that authorise commands (Ed25519, Ed448, X25519) are SPKI DER bytes, as on the wire.
X25519 keys used for DH only are 32 raw bytes. Ids are bytes; an absent id is b"".
"""

from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple


class QueueMode(Enum):
    MESSAGING = b"M"
    CONTACT = b"C"


class LinkData(NamedTuple):
    fixed: bytes
    user: bytes


class ServerHost(NamedTuple):
    """A server's address inside PRXY: hosts, port and the CA certificate's fingerprint."""

    hosts: tuple[bytes, ...]
    port: bytes
    key_hash: bytes


@dataclass(frozen=True, slots=True)
class MessagingReq:
    """QRMessaging: (sender id, link data), when the client brings them."""

    data: tuple[bytes, LinkData] | None = None


@dataclass(frozen=True, slots=True)
class ContactReq:
    """QRContact: (link id, (sender id, link data)), when the client brings them."""

    data: tuple[bytes, tuple[bytes, LinkData]] | None = None


QueueReq = MessagingReq | ContactReq


class NewNtfCreds(NamedTuple):
    auth_key: bytes
    dh_key: bytes


@dataclass(frozen=True, slots=True)
class NEW:
    rcv_auth_key: bytes
    rcv_dh_key: bytes
    basic_auth: bytes | None = None
    subscribe: bool = True
    queue_req: QueueReq | None = None
    ntf_creds: NewNtfCreds | None = None


@dataclass(frozen=True, slots=True)
class SUB:
    pass


@dataclass(frozen=True, slots=True)
class SUBS:
    """Before version 19 it carries nothing and decodes as count −1 and the empty hash."""

    count: int
    ids_hash: bytes


@dataclass(frozen=True, slots=True)
class KEY:
    key: bytes


@dataclass(frozen=True, slots=True)
class RKEY:
    keys: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class LSET:
    link_id: bytes
    data: LinkData


@dataclass(frozen=True, slots=True)
class LDEL:
    pass


@dataclass(frozen=True, slots=True)
class NKEY:
    auth_key: bytes
    dh_key: bytes


@dataclass(frozen=True, slots=True)
class NDEL:
    pass


@dataclass(frozen=True, slots=True)
class GET:
    pass


@dataclass(frozen=True, slots=True)
class ACK:
    msg_id: bytes


@dataclass(frozen=True, slots=True)
class OFF:
    pass


@dataclass(frozen=True, slots=True)
class DEL:
    pass


@dataclass(frozen=True, slots=True)
class QUE:
    pass


@dataclass(frozen=True, slots=True)
class SKEY:
    key: bytes


@dataclass(slots=True)
class SEND:
    """`notification` is the only flag in use. Not frozen: it is made once per message."""

    notification: bool
    body: bytes


@dataclass(frozen=True, slots=True)
class PING:
    pass


@dataclass(frozen=True, slots=True)
class LKEY:
    key: bytes


@dataclass(frozen=True, slots=True)
class LGET:
    pass


@dataclass(frozen=True, slots=True)
class PRXY:
    server: ServerHost
    basic_auth: bytes | None


@dataclass(frozen=True, slots=True)
class PFWD:
    version: int
    key: bytes
    transmission: bytes


@dataclass(frozen=True, slots=True)
class RFWD:
    transmission: bytes


@dataclass(frozen=True, slots=True)
class NSUB:
    pass


@dataclass(frozen=True, slots=True)
class NSUBS:
    count: int
    ids_hash: bytes


@dataclass(frozen=True, slots=True)
class RSLV:
    """A name to resolve. It came with version 20; at any version it parses, and is answered with ERR NAME."""

    domain: bytes


Command = (
    NEW
    | SUB
    | SUBS
    | KEY
    | RKEY
    | LSET
    | LDEL
    | NKEY
    | NDEL
    | GET
    | ACK
    | OFF
    | DEL
    | QUE
    | SKEY
    | SEND
    | PING
    | LKEY
    | LGET
    | PRXY
    | PFWD
    | RFWD
    | NSUB
    | NSUBS
    | RSLV
)


class ServiceRole(Enum):
    MESSAGING = b"M"
    NOTIFIER = b"N"
    PROXY = b"P"
