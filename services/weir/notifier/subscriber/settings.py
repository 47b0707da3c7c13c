"""The settings of the subscriber, and the times and bounds that it works with."""

from __future__ import annotations

import typing
from dataclasses import dataclass

from weir.client.dialling import DialSettings
from weir.notifier.store.records import Push
from weir.wire.ntf.types import PushProvider


class SubscriberSettings(DialSettings, typing.Protocol):
    """The section [subscriber]."""

    @property
    def use_service_credentials(self) -> bool:
        """Whether this router is a service of the SMP servers."""

    @property
    def allow_local_servers(self) -> bool:
        """Whether SMP servers at loopback, private and link-local addresses are allowed."""


class Dispatcher(typing.Protocol):
    """Sends pushes."""

    def offer(self, push: Push, context: bytes = b"", received: float = 0.0) -> object:
        """Send the push, or give its claim back. Never waits. `context` is that of the trace of its NMSG."""

    def room(self, provider: PushProvider) -> bool:
        """Whether the provider takes more pushes now."""


@dataclass(frozen=True)
class Limits:
    """All times are in seconds."""

    tick: float = 0.5  # between two looks at the replicas
    look: float = 5.0  # between two looks at the owners while nobody comes or goes
    settle: float = 3.0  # see ownership.py
    patience: float = 5.0
    grace: float = 3.0  # for the parts of a hand-over
    first_retry: float = 1.0  # between attempts to connect
    max_retry: float = 10.0
    max_unknown_retry: float = 300.0  # as max_retry, for servers that have not answered yet: any device can name them
    connect_timeout: float = 20.0
    reply_timeout: float = 15.0
    ping_interval: float = 60.0
    refused_after: float = 60.0  # a service is given up when the server has refused it for so long
    store_retry: float = 0.2  # between attempts to reach the store, doubling
    max_store_retry: float = 5.0
    first_walk_retry: float = 10.0  # between walks through subscriptions that were refused or not answered, doubling
    max_walk_retry: float = 600.0
    publish: float = 5.0  # between two publications of an own server's state
    batch: int = 100  # NSUBs that are sent together
    batches_in_flight: int = 10
    batches_in_page: int = 100  # behaviour 19
    subscriptions: int = 50_000  # that are read from the store and not answered yet, of all SMP servers together
    new_subscriptions: int = 5_000  # of one server that are known by their events; with more, the store is walked
    waiting: int = 10_000  # notifications of one server that the store has not taken yet; with more, reading pauses

    @property
    def page(self) -> int:
        return self.batch * self.batches_in_page
