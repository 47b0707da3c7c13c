"""Two edges on one Redis, as in the router's own tests."""

from tests.router.conftest import config, fleet, identity, placement, redis

__all__ = ["config", "fleet", "identity", "placement", "redis"]
