"""The events that an agent reports to its `on_event`."""

from dataclasses import dataclass
from enum import Enum

from weir.client.smp import Answer, ServiceSub
from weir.wire.smp.transmission import ServerTransmission


class Mismatch(Enum):
    """How the router's subscription of a service differs from the expected one. The first difference counts."""

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
    """The agent has connected. `service_id` is None if the session is not a service's."""

    service_id: bytes | None


@dataclass(frozen=True, slots=True)
class Disconnected:
    """The connection has ended. The agent will subscribe to these queues again."""

    queue_ids: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class Subscribed:
    """Queues are subscribed. With a `service_id`, they are associated with the service, and SUBS subscribes to them."""

    service_id: bytes | None
    queue_ids: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class SubscribeErrors:
    """The router refused these queues. The agent will not retry them."""

    errors: tuple[tuple[bytes, Answer], ...]


@dataclass(frozen=True, slots=True)
class Message:
    """A message (MSG) or a notification (NMSG)."""

    transmission: ServerTransmission


@dataclass(frozen=True, slots=True)
class Ended:
    """Another client has subscribed to the queue."""

    queue_id: bytes


@dataclass(frozen=True, slots=True)
class Deleted:
    """The queue was deleted."""

    queue_id: bytes


@dataclass(frozen=True, slots=True)
class ServiceSubscribed:
    """The service is subscribed. `mismatch` says how the router's subscription differs from the expected one."""

    expected: ServiceSub
    subscribed: ServiceSub
    mismatch: Mismatch | None


@dataclass(frozen=True, slots=True)
class ServiceAll:
    """The router has sent all messages that were waiting for the service."""


@dataclass(frozen=True, slots=True)
class ServiceDisconnected:
    """The connection has ended. The agent will subscribe to the service again."""

    service: ServiceSub


@dataclass(frozen=True, slots=True)
class ServiceEnded:
    """Another client of the service took over. `ended` comes from the router, `known` from the agent."""

    ended: ServiceSub
    known: ServiceSub | None


@dataclass(frozen=True, slots=True)
class ServiceFailed:
    """SUBS failed with an error other than SERVICE. The agent will not retry it."""

    expected: ServiceSub
    error: Answer


@dataclass(frozen=True, slots=True)
class ServiceUnavailable:
    """The router does not know this service. The agent subscribes to its queues one by one.

    The program should forget the service's id, count and hash.
    """

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
