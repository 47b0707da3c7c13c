"""Panels of the dashboard "Redis"."""

from __future__ import annotations

from panels.queries import SELECT, S, fleet, lines, number, rate

REDIS = (
    number("Redis answers", fleet("weir_redis_up")),
    number("Memory", fleet("weir_redis_memory_used_bytes"), "bytes"),
    number("Keys", fleet("weir_redis_keys")),
    number("Replicas", fleet("weir_redis_replicas")),
    number("Append-only file", fleet("weir_redis_aof_bytes"), "bytes"),
    number("Clients", fleet("weir_redis_connected_clients")),
    lines(
        "Memory",
        (fleet("weir_redis_memory_used_bytes"), "used {{job}}"),
        (f"{fleet('weir_redis_memory_max_bytes')} > 0", "limit {{job}}"),
        unit="bytes",
        text="About 700 bytes per queue. A waiting message takes its size and 15 % more.",
    ),
    lines(
        "Memory, share of the limit",
        (f"{fleet('weir_redis_memory_used_bytes')} / ({fleet('weir_redis_memory_max_bytes')} > 0)", "{{job}}"),
        unit="percentunit",
        text="When Redis is full, senders get errors, and no queue can be created.",
    ),
    lines("Commands", (rate("weir_redis_commands"), "{{job}}"), unit="ops"),
    lines(
        "Commands that failed",
        (
            f"sum by (namespace, job, kind) (rate(weir_redis_errors_total{SELECT}[$__rate_interval]))",
            "{{kind}} {{job}}",
        ),
        unit="ops",
        text="By the error code of Redis, or timeout, disconnected, not_durable. Clients got ERR INTERNAL.",
    ),
    lines(
        "Errors in the log",
        (
            f"sum by (namespace, job, logger) (rate(weir_errors_logged_total{SELECT}[$__rate_interval]))",
            "{{logger}} {{job}}",
        ),
        unit="ops",
        text="By the part of the program. weir.redis.failures: at most one a minute for each kind of failed command.",
    ),
    lines(
        "Damaged queues",
        (rate("weir_damaged_queues"), "{{job}}"),
        unit="ops",
        text="Must be 0: queues whose keys hold something else. The sweeper leaves them out and counts each per round.",
    ),
    lines(
        "CPU",
        (rate("weir_redis_cpu_seconds"), "{{job}}"),
        unit="percentunit",
        text="A Redis server uses one core at most.",
    ),
    lines("Append-only file", (fleet("weir_redis_aof_bytes"), "{{job}}"), unit="bytes"),
    lines(
        "Keys evicted",
        (rate("weir_redis_evicted_keys"), "{{job}}"),
        unit="ops",
        text="Must be 0: an evicted key is a lost queue or message. Set maxmemory-policy noeviction.",
    ),
    lines(
        "Queues and messages",
        (fleet(f"{S}queues_total1"), "queues {{job}}"),
        (fleet(f"{S}messages_total"), "messages {{job}}"),
    ),
)
