"""All Redis keys of a notification router. Scripts build the same keys under their hash tag."""

from __future__ import annotations

from weir.redis.partitions import Partitions
from weir.runtime.state.keys import CommonKeys
from weir.wire.ntf.types import PushProvider


class Keys(CommonKeys):
    def __init__(self, partitions: Partitions) -> None:
        super().__init__(partitions)
        self.storage = self.registry + b":storage"  # check value of the storage key
        self.servers = self.registry + b":servers"  # set of server ids
        self.addresses = self.registry + b":addresses"  # addresses of SMP servers by digest
        self._server = self.registry + b":server:"

    def token(self, p: int, token_id: bytes) -> bytes:
        return b"%b:t:%b" % (self.tags[p], token_id)

    def token_subscriptions(self, p: int, token_id: bytes) -> bytes:
        return b"%b:u:%b" % (self.tags[p], token_id)

    def last_notifications(self, p: int, token_id: bytes) -> bytes:
        return b"%b:l:%b" % (self.tags[p], token_id)

    def device(self, p: int, device_hash: bytes) -> bytes:
        """The tokens of a device, by the hash of their verify key."""
        return b"%b:d:%b" % (self.tags[p], device_hash)

    def subscription(self, p: int, sub_id: bytes) -> bytes:
        return b"%b:s:%b" % (self.tags[p], sub_id)

    def notifier(self, p: int, server_id: bytes, notifier_id: bytes) -> bytes:
        """The index from a notifier to its subscription, in a partition of its own."""
        return b"%b:x:%b%b" % (self.tags[p], server_id, notifier_id)

    def share(self, p: int, server_id: bytes) -> bytes:
        """A partition's share of an SMP server: owner, session, count and idsHash of associated subscriptions."""
        return b"%b:v:%b" % (self.tags[p], server_id)

    def associated(self, p: int, server_id: bytes) -> bytes:
        return b"%b:v:%b:q" % (self.tags[p], server_id)

    def pending(self, p: int, server_id: bytes) -> bytes:
        """The subscriptions that are to be subscribed one by one, sorted by id."""
        return b"%b:v:%b:p" % (self.tags[p], server_id)

    def waits(self, p: int, provider: PushProvider) -> bytes:
        """The tokens with a push of this provider, and when anybody may claim it."""
        return b"%b:w:%b" % (self.tags[p], provider.value)

    def cron(self, p: int) -> bytes:
        """The tokens with periodic pushes, and when the next one is due."""
        return b"%b:c" % self.tags[p]

    def counters(self, p: int) -> bytes:
        return b"%b:k" % self.tags[p]

    def server(self, server_id: bytes) -> bytes:
        return self._server + server_id
