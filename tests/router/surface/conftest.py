from tests.router.conftest import config, fleet, identity, placement, redis

__all__ = ["config", "fleet", "identity", "placement", "redis"]
