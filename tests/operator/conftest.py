from tests.support.redis import any_redis, redis_server, redis_servers

__all__ = ["any_redis", "redis_server", "redis_servers"]
