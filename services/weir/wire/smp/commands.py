"""Every SMP client command: one class each, named as on the wire.

`@declare` records for each command who sends it, the version that introduced it, how it is authorised, and which
services may send it. The codec, the credential check, the verification of authenticators, and the test of the table of
handlers read `DECLARATIONS`.

Keys that authorise commands (Ed25519, Ed448, X25519) are SPKI DER bytes, as on the wire. X25519 keys that are used for
DH only are 32 raw bytes. Ids are bytes; an absent id is b"".
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final, NamedTuple, TypeVar

from weir.wire.address import ServerHost
from weir.wire.declaration import Authorisation, Declaration
from weir.wire.versions import BASIC, NAMES, RCV_SERVICE, SENDING_PROXY, SERVICE_CERTS, SHORT_LINKS, SND_AUTH_KEY

T = TypeVar("T")


class ServiceRole(Enum):
    """The role that a service's certificate is used in."""

    MESSAGING = b"M"
    NOTIFIER = b"N"
    PROXY = b"P"


class Party(Enum):
    """The sender of a command. The entity id in the command's transmission is the id that this party knows."""

    CREATOR = auto()  # has no id yet
    RECIPIENT = auto()  # recipient id of a queue
    SENDER = auto()  # sender id of a queue
    LINK_READER = auto()  # id of a short link
    NOTIFIER = auto()  # notifier id of a queue
    RECIPIENT_SERVICE = auto()  # service id
    NOTIFIER_SERVICE = auto()  # service id
    PROXIED_CLIENT = auto()  # id of the proxy's session with a relay
    PROXY = auto()  # has no id: the id is inside the forwarded transmission
    CLIENT = auto()  # any client; has no id


_WITHOUT_ENTITY: Final = (Party.CREATOR, Party.PROXY, Party.CLIENT)


@dataclass(frozen=True, slots=True)
class CommandDeclaration(Declaration):
    party: Party
    role: ServiceRole | None
    """The role a service must have to send the command; None: any role."""
    service_signed: bool
    """Whether a service signs the command in addition to the authorisation by the queue's key."""


DECLARATIONS: Final[dict[type, CommandDeclaration]] = {}


def declare(
    party: Party,
    authorisation: Authorisation = Authorisation.REQUIRED,
    *,
    first_version: int = BASIC,
    role: ServiceRole | None = ServiceRole.MESSAGING,
    service_signed: bool = False,
) -> Callable[[type[T]], type[T]]:
    """Record the declaration of a command class. The class's name is the tag."""

    def record(kind: type[T]) -> type[T]:
        has_entity = party not in _WITHOUT_ENTITY
        tag = kind.__name__.encode()
        DECLARATIONS[kind] = CommandDeclaration(
            tag, first_version, authorisation, has_entity, party, role, service_signed
        )
        return kind

    return record


class QueueMode(Enum):
    MESSAGING = b"M"
    CONTACT = b"C"


class LinkData(NamedTuple):
    fixed: bytes
    user: bytes


@dataclass(frozen=True, slots=True)
class MessagingReq:
    """QRMessaging: (sender id, link data) if the client chose them."""

    data: tuple[bytes, LinkData] | None = None


@dataclass(frozen=True, slots=True)
class ContactReq:
    """QRContact: (link id, (sender id, link data)) if the client chose them."""

    data: tuple[bytes, tuple[bytes, LinkData]] | None = None


QueueReq = MessagingReq | ContactReq


class NewNtfCreds(NamedTuple):
    auth_key: bytes
    dh_key: bytes


@declare(Party.CREATOR, service_signed=True)
@dataclass(frozen=True, slots=True)
class NEW:
    rcv_auth_key: bytes
    rcv_dh_key: bytes
    basic_auth: bytes | None = None
    subscribe: bool = True
    queue_req: QueueReq | None = None
    ntf_creds: NewNtfCreds | None = None


@declare(Party.RECIPIENT, service_signed=True)
@dataclass(frozen=True, slots=True)
class SUB:
    pass


@declare(Party.RECIPIENT_SERVICE, first_version=RCV_SERVICE)
@dataclass(frozen=True, slots=True)
class SUBS:
    """Before version 19 the command has no parameters and decodes as count −1 and the empty hash."""

    count: int
    ids_hash: bytes


@declare(Party.RECIPIENT)
@dataclass(frozen=True, slots=True)
class KEY:
    key: bytes


@declare(Party.RECIPIENT, first_version=SHORT_LINKS)
@dataclass(frozen=True, slots=True)
class RKEY:
    keys: tuple[bytes, ...]


@declare(Party.RECIPIENT, first_version=SHORT_LINKS)
@dataclass(frozen=True, slots=True)
class LSET:
    link_id: bytes
    data: LinkData


@declare(Party.RECIPIENT, first_version=SHORT_LINKS)
@dataclass(frozen=True, slots=True)
class LDEL:
    pass


@declare(Party.RECIPIENT)
@dataclass(frozen=True, slots=True)
class NKEY:
    auth_key: bytes
    dh_key: bytes


@declare(Party.RECIPIENT)
@dataclass(frozen=True, slots=True)
class NDEL:
    pass


@declare(Party.RECIPIENT)
@dataclass(frozen=True, slots=True)
class GET:
    pass


@declare(Party.RECIPIENT)
@dataclass(frozen=True, slots=True)
class ACK:
    msg_id: bytes


@declare(Party.RECIPIENT)
@dataclass(frozen=True, slots=True)
class OFF:
    pass


@declare(Party.RECIPIENT)
@dataclass(frozen=True, slots=True)
class DEL:
    pass


@declare(Party.RECIPIENT)
@dataclass(frozen=True, slots=True)
class QUE:
    pass


@declare(Party.SENDER, first_version=SND_AUTH_KEY)
@dataclass(frozen=True, slots=True)
class SKEY:
    key: bytes


@declare(Party.SENDER, Authorisation.OPTIONAL)
@dataclass(slots=True)
class SEND:
    """`notification` is the only flag in use.

    The class is not frozen, because making a frozen object takes longer and SEND is the most frequent command.
    """

    notification: bool
    body: bytes


@declare(Party.CLIENT, Authorisation.FORBIDDEN, role=None)
@dataclass(frozen=True, slots=True)
class PING:
    pass


@declare(Party.LINK_READER, first_version=SHORT_LINKS)
@dataclass(frozen=True, slots=True)
class LKEY:
    key: bytes


@declare(Party.LINK_READER, Authorisation.FORBIDDEN, first_version=SHORT_LINKS)
@dataclass(frozen=True, slots=True)
class LGET:
    pass


@declare(Party.CLIENT, Authorisation.FORBIDDEN, first_version=SENDING_PROXY)
@dataclass(frozen=True, slots=True)
class PRXY:
    server: ServerHost
    basic_auth: bytes | None


@declare(Party.PROXIED_CLIENT, Authorisation.FORBIDDEN, first_version=SENDING_PROXY)
@dataclass(frozen=True, slots=True)
class PFWD:
    version: int
    key: bytes
    transmission: bytes


@declare(Party.PROXY, Authorisation.FORBIDDEN, first_version=SENDING_PROXY, role=ServiceRole.PROXY)
@dataclass(frozen=True, slots=True)
class RFWD:
    transmission: bytes


@declare(Party.NOTIFIER, role=ServiceRole.NOTIFIER, service_signed=True)
@dataclass(frozen=True, slots=True)
class NSUB:
    pass


@declare(Party.NOTIFIER_SERVICE, first_version=SERVICE_CERTS, role=ServiceRole.NOTIFIER)
@dataclass(frozen=True, slots=True)
class NSUBS:
    count: int
    ids_hash: bytes


@declare(Party.CLIENT, Authorisation.FORBIDDEN, first_version=NAMES)
@dataclass(frozen=True, slots=True)
class RSLV:
    """A name to resolve. Weir resolves no names and answers ERR NAME."""

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
