"""The counts in the status of an SMPRouter, which other routers do not have: sums over all edges."""

from __future__ import annotations

from datetime import UTC, datetime

import aiohttp

from weir_operator.kinds.routers.model import Counts, Router
from weir_operator.kube.conditions import timestamp

_NUMBERS = ("connections", "queues", "messages")
COUNTED = (*_NUMBERS, "observedAt")


async def read_counts(session: aiohttp.ClientSession, host: str, router: Router) -> Counts | None:
    """Ask one edge, which knows the totals of all. None when it does not answer as it should."""
    url = f"http://{host}:{router.spec['ports']['http']}/status.json"
    try:
        async with session.get(url) as response:
            if response.status != 200:
                return None
            answer = await response.json()
        numbers = {name: int(answer.get(name) or 0) for name in _NUMBERS}
    except (aiohttp.ClientError, OSError, ValueError, TimeoutError, AttributeError):
        return None
    return {**numbers, "observedAt": timestamp(datetime.now(UTC))}
