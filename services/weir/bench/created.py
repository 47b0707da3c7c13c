"""The queues and services that a bench creates. The bench deletes them at its end, so that a live router stays clean.

Queues are deleted through the protocol. A service can only be removed from the store, which needs `--home`. Without
`--home`, the service stays without queues until the router forgets it. A router that the bench has started for itself
is not cleaned up, because it is removed as a whole.
"""

import sys

from weir.bench.clients import Queue, describe, key_type_for, open_client
from weir.bench.store import remove
from weir.bench.target import BenchError, Target
from weir.client.errors import ClientError
from weir.client.smp import Request, SmpClient
from weir.client.uninterrupted import uninterrupted
from weir.crypto.keys import KeyPair, KeyType, generate
from weir.redis.errors import StoreError, Unavailable
from weir.wire.errors import Simple
from weir.wire.smp.commands import DEL, KEY, NEW
from weir.wire.smp.replies import ERR, IDS, OK

_BATCH = 500


class Created:
    """Creates queues, and deletes them at the end of the `async with` block."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._queues: list[Queue] = []
        self._services: set[bytes] = set()
        self.filled: list[bytes] = []
        """Recipient ids of the queues that were written directly into the store."""

    async def __aenter__(self) -> "Created":
        return self

    async def __aexit__(self, *_: object) -> None:
        if not self._target.own:
            await uninterrupted(self._delete())

    async def _delete(self) -> None:
        try:
            await self._delete_queues()
            if self._target.redis_url is not None and (self.filled or self._services):
                await remove(self._target, self.filled, self._services)
        except (BenchError, ClientError, StoreError, Unavailable) as error:
            reason = str(error) or type(error).__name__
            print(f"weir bench: some queues of the bench are not deleted: {reason}", file=sys.stderr)

    def add_service(self, client: SmpClient) -> None:
        """Note the service whose certificate this client has presented."""
        if client.service_id is not None:
            self._services.add(client.service_id)

    async def queue(
        self, client: SmpClient, key_type: KeyType, *, subscribe: bool = True, secure: bool = True
    ) -> Queue:
        """Create a queue. By default, the client subscribes to it and a sender's key secures it."""
        [queue] = await self.queues(client, 1, key_type, subscribe=subscribe)
        if secure:
            queue.snd_key = generate(queue.rcv_key.type)
            answer = await client.send(KEY(queue.snd_key.spki), queue.rcv_id, queue.rcv_key)
            if not isinstance(answer, OK):
                raise BenchError(f"KEY failed: {describe(answer)}")
        return queue

    async def queues(
        self, client: SmpClient, count: int, key_type: KeyType, *, subscribe: bool = False, timeout: float = 120
    ) -> list[Queue]:
        """Create many queues in batches, without a sender's key."""
        kind = key_type_for(client.session.version, key_type)
        queues: list[Queue] = []
        while len(queues) < count:
            keys = [generate(kind) for _ in range(min(_BATCH, count - len(queues)))]
            queues += await uninterrupted(self._create(client, keys, subscribe, timeout))
        return queues

    async def _create(self, client: SmpClient, keys: list[KeyPair], subscribe: bool, timeout: float) -> list[Queue]:
        """Create one queue for each key, and note all that were created, also when one of them fails."""
        dh_key = generate("x25519").public
        requests = [Request(NEW(key.spki, dh_key, self._target.basic_auth, subscribe), b"", key) for key in keys]
        answers = await client.send_many(requests, timeout=timeout)
        queues = [
            Queue(answer.rcv_id, answer.snd_id, key, None)
            for key, answer in zip(keys, answers, strict=True)
            if isinstance(answer, IDS)
        ]
        self._queues += queues
        for answer in answers:
            if not isinstance(answer, IDS):
                raise BenchError(f"NEW failed: {describe(answer)}")
        return queues

    async def _delete_queues(self) -> None:
        if not self._queues:
            return
        async with await open_client(self._target) as client:
            while self._queues:
                batch, self._queues = self._queues[:_BATCH], self._queues[_BATCH:]
                requests = [Request(DEL(), queue.rcv_id, queue.rcv_key) for queue in batch]
                for answer in await client.send_many(requests):
                    if answer not in (OK(), ERR(Simple.AUTH)):  # AUTH: the queue is gone already
                        raise BenchError(f"DEL failed: {describe(answer)}")
