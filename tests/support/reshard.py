"""Moves the slot of a place to another master of a cluster, in steps, as `redis-cli --cluster reshard` does."""

from typing import Any

import redis

from tests.support.redis import client_of, until
from weir.redis.embedded import Embedded
from weir.redis.partitions import Partitions


class Reshard:
    """To the next node, or to the one with that number."""

    def __init__(self, nodes: list[Embedded], p: int, to: int | None = None) -> None:
        self._nowhere = Partitions().tags[p] + b":"
        self.slot = Partitions().slots[p]
        self._clients = [client_of(node) for node in nodes]
        self._ids = [client.execute_command("CLUSTER", "MYID").decode() for client in self._clients]
        self._ports = [int(node.url.rpartition(":")[2]) for node in nodes]
        until(self._agreed)
        self.source = self._ports.index(self._owner(0))
        self.target = (self.source + 1) % len(nodes) if to is None else to

    def _owner(self, node: int) -> int:
        """The port of the master that has the slot, as this node sees it."""
        try:
            self._clients[node].execute_command("EXISTS", self._nowhere)
        except redis.exceptions.MovedError as moved:
            return moved.port
        return self._ports[node]

    def _agreed(self) -> bool:
        """Whether all nodes agree. Nodes hear of a move one after the other. A second one with other masters must not
        begin before all know the epochs of the first, or old news of the slot may overrule new ones."""
        views = set()
        for node, client in enumerate(self._clients):
            known = client.execute_command("CLUSTER NODES").values()
            views.add((self._owner(node), *sorted((at["node_id"], at["epoch"]) for at in known)))
        return len(views) == 1

    def begin(self) -> None:
        self._set(self.target, "IMPORTING", self.source)
        self._set(self.source, "MIGRATING", self.target)

    def move_some(self, count: int = 10) -> bool:
        """Move some keys. Return whether there were any.

        MIGRATE answers NOKEY for a key that has expired. Such a key must not end the move: the keys behind it would
        stay, and the source deletes them when it hears that the slot is the target's.
        """
        source = self._clients[self.source]
        found = source.execute_command("CLUSTER", "GETKEYSINSLOT", self.slot, count)
        if found:
            self.move(*found)
        return bool(found)

    def move(self, *found: bytes) -> bool:
        moved = self._clients[self.source].execute_command(
            "MIGRATE", "127.0.0.1", self._ports[self.target], "", 0, 5000, "KEYS", *found
        )
        return bool(moved == b"OK")

    def end(self) -> None:
        for node in (self.target, self.source, *set(range(len(self._ids))) - {self.target, self.source}):
            self._set(node, "NODE", self.target)

    def cancel(self) -> None:
        for node in (self.source, self.target):
            self._clients[node].execute_command("CLUSTER", "SETSLOT", self.slot, "STABLE")

    def whole(self, step: int = 10) -> None:
        self.begin()
        while self.move_some(step):
            pass
        self.end()

    def at_once(self) -> None:
        """As Valkey 9 can."""
        source = self._clients[self.source]
        source.execute_command(
            "CLUSTER", "MIGRATESLOTS", "SLOTSRANGE", self.slot, self.slot, "NODE", self._ids[self.target]
        )
        until(lambda: self._owner(self.target) == self._ports[self.target])

    def there(self, *words: bytes | int) -> Any:
        """Asks the node that gets the slot."""
        with self._clients[self.target].pipeline(transaction=False) as pipe:
            pipe.execute_command("ASKING")
            pipe.execute_command(*words)
            return pipe.execute()[1]

    def _set(self, node: int, how: str, other: int) -> None:
        self._clients[node].execute_command("CLUSTER", "SETSLOT", self.slot, how, self._ids[other])
