"""The keys of an SMP router without a prefix, for tests that look into Redis."""

from weir.redis.partitions import Partitions
from weir.router.store.keys import Keys

keys = Keys(Partitions())
