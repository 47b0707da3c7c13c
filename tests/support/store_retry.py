"""Losing the answer to a script, with the connection: what a store's retry tests share.

A scenario prepares something and returns the step whose answer is lost. It runs twice, with and without the loss, and
must end alike: the same result, the same contents of Redis, the same events.
"""

from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

import pytest

from tests.redis.proxy import Proxy
from tests.support.store_edge import StoreEdge, dump
from weir.redis import operations, resp

EDGE, OTHER = b"edge1", b"edge2"
Step = Callable[[], Awaitable[Any]]
Prepare = Callable[[Any, Any], Awaitable[Step]]


class Outcome(NamedTuple):
    result: Any
    contents: dict[bytes, Any]
    events: list[Any]


class Retries:
    """How a router's store is opened and compared."""

    def __init__(
        self,
        open_edge: Callable[..., Awaitable[StoreEdge]],
        settings: dict[str, Any],
        skips: Callable[[bytes], bool],
        fields: frozenset[bytes],
    ) -> None:
        """`skips` names keys that are left out of the comparison, `fields` those of hashes."""
        self._open_edge = open_edge
        self._settings = settings
        self._skips = skips
        self._fields = fields

    async def attempt(self, proxy: Proxy, script: str, prepare: Prepare, *, lose: bool) -> Outcome:
        direct = await self._open_edge(f"redis://{proxy._target[0]}:{proxy._target[1]}", edge=OTHER, **self._settings)
        await direct.store.core.ask(0, b"FLUSHALL")
        edge = await self._open_edge(proxy.url, edge=EDGE, **self._settings)
        await direct.store.core.ask(0, b"SET", b"{0}:dummy", b"1")
        direct.store.leases.renew()
        step = await prepare(edge, direct)
        await direct.settled()
        if lose:
            proxy.lose_answer_to(edge.store.topology.scripts.shas[script])
        before = proxy.lost
        result = await step()
        assert proxy.lost == before + lose, "the scenario did not call its script"
        events = [(type(e).__name__, e) for e in await direct.settled()]
        for one in (edge, edge, direct, direct):  # what the first look handles, the second removes
            await one.settled()
        contents = await dump(direct.store.core, self._skips, self._fields)
        await edge.close()
        await direct.close()
        return Outcome(result, contents, events)

    async def lose_an_answer(
        self, proxy: Proxy, script: str, prepare: Prepare, monkeypatch: pytest.MonkeyPatch
    ) -> tuple[Outcome, Outcome]:
        """The outcomes without and with a lost answer. The script was called again, as a retry."""
        retried: list[bytes] = []
        shas: list[bytes] = []

        def recording(wire: bytes) -> bytes:
            retried.append(wire)
            return resp.as_retry(wire)

        async def prepared(edge: Any, other: Any) -> Step:
            shas.append(edge.store.topology.scripts.shas[script])
            return await prepare(edge, other)

        monkeypatch.setattr(operations, "as_retry", recording)
        whole = await self.attempt(proxy, script, prepared, lose=False)
        assert not retried
        broken = await self.attempt(proxy, script, prepared, lose=True)
        assert any(shas[0] in wire for wire in retried)
        return whole, broken
