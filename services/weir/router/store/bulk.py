"""Create and delete many queues at once, for benches and tests. No client is needed.

The scripts are those of NEW and DEL.
"""

import asyncio
import os
from collections.abc import AsyncIterator
from typing import Any, NamedTuple

from weir.crypto.keys import generate, pack_key
from weir.redis.errors import StoreError
from weir.router.store import keys
from weir.router.store.core import Core
from weir.router.store.packing import record_fields
from weir.router.store.records import NewNotifier, NewQueue, Owner
from weir.wire.smp import ids_hash
from weir.wire.smp.commands import QueueMode

_WINDOW = 1000


class Made(NamedTuple):
    """The ids of a queue."""

    rcv_id: bytes
    snd_id: bytes
    ntf_id: bytes | None


async def bulk_queues(
    core: Core,
    count: int,
    *,
    day: int,
    owner: Owner | None = None,
    service: bytes | None = None,
    rcv_key: bytes | None = None,
    snd_key: bytes | None = None,
    secured: bool = False,
    notifier: bool = False,
) -> AsyncIterator[Made]:
    """Create queues and yield the ids of each. With `service`, `owner` must own that service.

    With `notifier`, each queue has a notifier, whose key is `rcv_key` too.
    """
    rcv_key = rcv_key or generate("x25519").spki
    if secured and snd_key is None:
        snd_key = generate("x25519").spki
    token = core.token(*owner) if owner else None
    # Drawn ids by partition: combining ids that share a partition by chance is cheaper than drawing for a partition.
    pool: dict[int, list[bytes]] = {}
    wanted = 3 if notifier else 2
    made = 0
    while made < count:
        batch: list[Made] = []
        calls: list[asyncio.Future[Any]] = []
        while len(batch) < min(_WINDOW, count - made):
            entity_id = os.urandom(keys.ID_LENGTH)
            p = core.partition(entity_id)
            ids = pool.setdefault(p, [])
            ids.append(entity_id)
            if len(ids) < wanted:
                continue
            pool[p] = []
            rcv_id, snd_id = ids[:2]
            ntf = NewNotifier(ids[2], rcv_key, os.urandom(32)) if notifier else None
            new = NewQueue(rcv_id, snd_id, rcv_key, os.urandom(32), day, QueueMode.MESSAGING, ntf, None, owner, service)
            fields = record_fields(new, token)
            if snd_key is not None:
                fields += [b"y", pack_key(snd_key)]
            snd = core.keys.sender(p, snd_id)
            calls.append(
                core.call(
                    p,
                    "new",
                    [
                        core.keys.queue(p, rcv_id),
                        snd,
                        core.keys.creation(p, snd_id),
                        core.keys.link_data(p, rcv_id),
                        core.keys.notifier(p, ids[2]) if ntf else snd,
                    ],
                    [b"", b"", token or b"", service or b"", ids_hash.of_id(rcv_id), b"", b"", *fields],
                )
            )
            batch.append(Made(rcv_id, snd_id, ids[2] if ntf else None))
        if any(await asyncio.gather(*calls)):
            raise StoreError("a queue could not be made: does the owner own the service?")
        made += len(batch)
        for pair in batch:
            yield pair


async def delete_queues(core: Core, rcv_ids: list[bytes]) -> None:
    """Delete queues that `bulk_queues` has created without a notifier."""
    no_notifier = ids_hash.of_id(b"")
    for start in range(0, len(rcv_ids), _WINDOW):
        calls = []
        for rcv_id in rcv_ids[start : start + _WINDOW]:
            p = core.partition(rcv_id)
            names = [core.keys.queue(p, rcv_id), core.keys.messages(p, rcv_id)]
            calls.append(core.call(p, "delete", names, [b"", b"", ids_hash.of_id(rcv_id), no_notifier, b""]))
        await asyncio.gather(*calls)
