"""SMP clients: the public API for programs that talk to a router.

`SmpClient` is one connection to a router. It matches replies with commands and queues events. `SmpAgent` keeps
subscriptions across reconnections and reports changes as the classes in `weir.client.events`.

All errors that the clients raise are subclasses of `ClientError`. Names that are not listed in `__all__` may change.
"""

from weir.client import events
from weir.client.agent import AgentConfig, SmpAgent
from weir.client.smp import (
    Answer,
    ClientError,
    CommandNotSent,
    ConnectionClosed,
    NoServiceSession,
    ReplyTimeout,
    Request,
    ServiceSub,
    SmpClient,
    UnexpectedReply,
)

__all__ = [
    "AgentConfig",
    "Answer",
    "ClientError",
    "CommandNotSent",
    "ConnectionClosed",
    "NoServiceSession",
    "ReplyTimeout",
    "Request",
    "ServiceSub",
    "SmpAgent",
    "SmpClient",
    "UnexpectedReply",
    "events",
]
