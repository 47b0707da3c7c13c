"""What an agent tells its owner."""

from dataclasses import dataclass
from enum import Enum

from weir.client.smp import Answer, ServiceSub
from weir.wire.transmission import ServerTransmission


class Mismatch(Enum):
    """How the router's numbers differ from the service's own; the first that applies."""

    SERVICE_ID = "service id"
    COUNT = "number of queues"
    IDS_HASH = "hash of their ids"


def mismatch(expected: ServiceSub, subscribed: ServiceSub) -> Mismatch | None:
    if expected.service_id != subscribed.service_id:
        return Mismatch.SERVICE_ID
    if expected.count != subscribed.count:
        return Mismatch.COUNT
    return Mismatch.IDS_HASH if expected.ids_hash != subscribed.ids_hash else None


@dataclass(frozen=True, slots=True)
class Connected:
    service_id: bytes | None


@dataclass(frozen=True, slots=True)
class Disconnected:
    """These will be subscribed again."""

    queue_ids: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class Subscribed:
    """With the service's id: the queues are associated with it, and will come back with the service."""

    service_id: bytes | None
    queue_ids: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class SubscribeErrors:
    """These will not be tried again."""

    errors: tuple[tuple[bytes, Answer], ...]


@dataclass(frozen=True, slots=True)
class Message:
    """MSG or NMSG."""

    transmission: ServerTransmission


@dataclass(frozen=True, slots=True)
class Ended:
    """Another client has subscribed to the queue."""

    queue_id: bytes


@dataclass(frozen=True, slots=True)
class Deleted:
    queue_id: bytes


@dataclass(frozen=True, slots=True)
class ServiceSubscribed:
    expected: ServiceSub
    subscribed: ServiceSub
    mismatch: Mismatch | None


@dataclass(frozen=True, slots=True)
class ServiceAll:
    """Every message that had waited has been sent."""


@dataclass(frozen=True, slots=True)
class ServiceDisconnected:
    """It will be subscribed again."""

    service: ServiceSub


@dataclass(frozen=True, slots=True)
class ServiceEnded:
    """Another client of the service took over; `known` is what this one had believed."""

    ended: ServiceSub
    known: ServiceSub | None


@dataclass(frozen=True, slots=True)
class ServiceFailed:
    """An error that is not about the service; it is not tried again."""

    expected: ServiceSub
    error: Answer


@dataclass(frozen=True, slots=True)
class ServiceUnavailable:
    """The queues of this service are now subscribed one by one; what the owner stored about it is void."""

    service: ServiceSub


AgentEvent = (
    Connected
    | Disconnected
    | Subscribed
    | SubscribeErrors
    | Message
    | Ended
    | Deleted
    | ServiceSubscribed
    | ServiceAll
    | ServiceDisconnected
    | ServiceEnded
    | ServiceFailed
    | ServiceUnavailable
)
