"""Every SMP reply and event (the reference's BrokerMsg): one class each, named as on the wire."""

from dataclasses import dataclass
from typing import NamedTuple

from weir.wire.errors import ErrorType
from weir.wire.smp.commands import LinkData, QueueMode
from weir.wire.versions import VersionRange


class ServerNtfCreds(NamedTuple):
    ntf_id: bytes
    dh_key: bytes


class CertChainKey(NamedTuple):
    """A certificate chain (DER, leaf first) and a key signed by its leaf (the signed DER object)."""

    chain: tuple[bytes, ...]
    signed_key: bytes


@dataclass(frozen=True, slots=True)
class IDS:
    rcv_id: bytes
    snd_id: bytes
    dh_key: bytes
    queue_mode: QueueMode | None = None
    link_id: bytes | None = None
    service_id: bytes | None = None
    ntf_creds: ServerNtfCreds | None = None


@dataclass(frozen=True, slots=True)
class LNK:
    snd_id: bytes
    data: LinkData


@dataclass(frozen=True, slots=True)
class SOK:
    """Encoded as OK before version 16."""

    service_id: bytes | None = None


@dataclass(frozen=True, slots=True)
class SOKS:
    count: int
    ids_hash: bytes


@dataclass(frozen=True, slots=True)
class MSG:
    msg_id: bytes
    body: bytes


@dataclass(frozen=True, slots=True)
class ALLS:
    pass


@dataclass(frozen=True, slots=True)
class NID:
    ntf_id: bytes
    dh_key: bytes


@dataclass(frozen=True, slots=True)
class NMSG:
    nonce: bytes
    meta: bytes


@dataclass(frozen=True, slots=True)
class PKEY:
    session_id: bytes
    versions: VersionRange
    cert_key: CertChainKey


@dataclass(frozen=True, slots=True)
class RRES:
    response: bytes


@dataclass(frozen=True, slots=True)
class PRES:
    response: bytes


@dataclass(frozen=True, slots=True)
class END:
    pass


@dataclass(frozen=True, slots=True)
class ENDS:
    count: int
    ids_hash: bytes


@dataclass(frozen=True, slots=True)
class DELD:
    pass


@dataclass(frozen=True, slots=True)
class INFO:
    """QueueInfo as the JSON text that stands on the wire."""

    json: bytes


@dataclass(frozen=True, slots=True)
class OK:
    pass


@dataclass(frozen=True, slots=True)
class ERR:
    error: ErrorType


@dataclass(frozen=True, slots=True)
class PONG:
    pass


@dataclass(frozen=True, slots=True)
class RNAME:
    """A resolved name (version 20) as the JSON text that stands on the wire. Weir's routers never send this reply."""

    json: bytes


Reply = (
    IDS
    | LNK
    | SOK
    | SOKS
    | MSG
    | ALLS
    | NID
    | NMSG
    | PKEY
    | RRES
    | PRES
    | END
    | ENDS
    | DELD
    | INFO
    | OK
    | ERR
    | PONG
    | RNAME
)
