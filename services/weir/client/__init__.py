"""Clients: the public API for programs that talk to a router.

`SmpClient` is one connection to a message router. It matches replies with commands and queues events. `SmpAgent` keeps
subscriptions across reconnections and reports changes as the classes in `weir.client.events`. `NtfClient` is one
connection to a notification router.

All errors that the clients raise are subclasses of `ClientError`. Names that are not listed in `__all__` may change.
"""

from weir.client import events
from weir.client.agent import AgentConfig, SmpAgent
from weir.client.errors import (
    ClientError,
    CommandNotSent,
    ConnectionClosed,
    NoServiceSession,
    ReplyTimeout,
    UnexpectedReply,
)
from weir.client.ntf import NtfAnswer, NtfClient, NtfRequest
from weir.client.smp import Answer, Request, ServiceSub, SmpClient

__all__ = [
    "AgentConfig",
    "Answer",
    "ClientError",
    "CommandNotSent",
    "ConnectionClosed",
    "NoServiceSession",
    "NtfAnswer",
    "NtfClient",
    "NtfRequest",
    "ReplyTimeout",
    "Request",
    "ServiceSub",
    "SmpAgent",
    "SmpClient",
    "UnexpectedReply",
    "events",
]
