"""Redis servers, and one behind a proxy that can hold or cut its connections."""

from tests.redis.proxy import proxy, server
from tests.support.redis import any_redis, redis_server, redis_servers

__all__ = ["any_redis", "proxy", "redis_server", "redis_servers", "server"]
