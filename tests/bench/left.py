"""Queues and services that benches have left at a router."""

import redis

from weir.bench.target import Target

_KINDS = ("q", "s", "m", "b", "v", "fp", "service")


def left(target: Target) -> list[bytes]:
    """The keys of queues, messages and services in the router's Redis."""
    assert target.redis_url is not None
    with redis.Redis.from_url(target.redis_url) as client:
        names: list[bytes] = [name for kind in _KINDS for name in client.keys(f"{{*}}:{kind}:*")]
        # An acknowledged message leaves an empty body for some seconds.
        return sorted(name for name in names if b":b:" not in name or client.strlen(name))
