"""Pushes that are due, and who sends them.

A token has at most one push under way. The edge that sends it has *claimed* it; the claim is in the token's record,
and the time when it expires is in the set of waiting tokens of the provider. What comes meanwhile is pushed by the
next push, which `done` claims. An edge that dies leaves its claims to expire: `due` gives them to another edge.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from weir.notifier.outcome import Delivered, Failed, Invalid, Outcome, RetryLater
from weir.notifier.store.core import Core
from weir.notifier.store.packing import pack_token_status
from weir.notifier.store.records import Push, Token
from weir.wire.ntf.types import PushProvider, TokenInvalid

_FIRST_DELAY_MS, _LONGEST_DELAY_MS = 5_000, 900_000
_MOST_TRIES = 100  # about a day
_CRON_PAGE = 100


class Pushes:
    def __init__(self, core: Core) -> None:
        self._core = core
        self._keys = core.keys

    async def claim(self, token: Token) -> Push | None:
        """Claim the push of a token that is due, e.g. the verification right after `tokens.register`.

        None when no push is due, or another edge has claimed it.
        """
        core, p = self._core, token.partition
        raw = await core.call(p, "claim", [self._keys.token(p, token.id)], [core.new_claim(), core.claim_ms])
        return None if raw == 0 else await core.push(raw)

    async def done(self, push: Push, outcome: Outcome) -> Push | None:
        """Store what became of a push, and claim the token's next one if there is one by now.

        Delivered verification → CONFIRMED (behaviour 23). Invalid → INVALID with the reason. After RetryLater the push
        is due again later, with the newest messages; after about a day of tries it counts as Failed.
        """
        match outcome:
            case Delivered():
                return await self._done(push, b"d")
            case Invalid(reason):
                return await self._done(push, b"i", pack_token_status(TokenInvalid(reason)))
            case Failed():
                return await self._done(push, b"f")
            case RetryLater(after):
                return await self._done(push, b"l", b"" if after is None else b"%d" % (after * 1000))

    async def give_back(self, push: Push, after: float = 0.0) -> None:
        """Give up a claim without a try: the push is due again after so many seconds."""
        await self._done(push, b"b", b"%d" % (after * 1000))

    async def _done(self, push: Push, outcome: bytes, detail: bytes = b"") -> Push | None:
        core, token = self._core, push.token
        p = token.partition
        raw = await core.call(
            p,
            "done",
            [self._keys.token(p, token.id)],
            [
                push.claim, push.kind.value, push.seq, core.sealer.device(token.device), outcome, detail,
                core.new_claim(), core.claim_ms, _MOST_TRIES, _FIRST_DELAY_MS, _LONGEST_DELAY_MS,
            ],
        )  # fmt: skip
        return None if raw == 0 else await core.push(raw)

    async def due(self, partition: int, room: Mapping[PushProvider, int]) -> list[Push]:
        """Claim pushes of a partition that are due: waiting ones, those with an expired claim, retries, periodic ones.

        `room` says how many for each provider.
        """
        core, p = self._core, partition
        # One pipeline: Redis makes the periodic pushes due before it claims.
        answers = await asyncio.gather(
            core.call(p, "cron", [self._keys.cron(p)], [_CRON_PAGE]),
            *(
                core.call(p, "due", [self._keys.waits(p, provider)], [most, core.new_claim(), core.claim_ms])
                for provider, most in room.items()
                if most > 0
            ),
        )
        found = [await core.readable_push(raw) for pushes in answers[1:] for raw in pushes]
        return [push for push in found if push is not None]

    async def waiting(self) -> dict[PushProvider, int]:
        """How many tokens have a push that waits or is under way, by provider."""
        partitions = range(len(self._keys.tags) - 1)
        providers = list(PushProvider)
        counts = await asyncio.gather(
            *(self._core.read(p, b"ZCARD", self._keys.waits(p, each)) for each in providers for p in partitions)
        )
        size = len(partitions)
        return {each: sum(counts[n * size : (n + 1) * size]) for n, each in enumerate(providers)}
