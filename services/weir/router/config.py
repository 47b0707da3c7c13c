"""All settings of the SMP router, as dataclasses. `load` reads them.

A setting `key` of a section is `[section] key` in TOML and `WEIR_SECTION_KEY` in the environment, which wins over the
file. A duration is a number of seconds in these classes, and text such as "300ms", "10s" or "21d" in files.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

from weir.config import kinds
from weir.config.file import Problem
from weir.config.kinds import setting
from weir.config.schema import Places, Schema
from weir.redis import settings as redis
from weir.redis.settings import Redis
from weir.router.config_ini import SMP_SERVER_INI
from weir.runtime.settings import Drain, InactiveClients, Rollups, check_rollups
from weir.surface import settings as surface
from weir.surface.settings import Control, ControlPasswords, Http, Information
from weir.telemetry.settings import Telemetry
from weir.transport import settings as transport
from weir.transport.settings import Listening, OtherRouters


@dataclass(frozen=True)
class Transport(Listening):
    ports: tuple[int, ...] = setting(kinds.PORTS, (5223,), "ports to listen on for clients")
    outgoing_bytes: int = setting(
        kinds.SIZE, 256 << 10, "queued bytes per client above which its messages stay in Redis"
    )
    outgoing_low_bytes: int = setting(kinds.SIZE, 64 << 10, "queued bytes below which messages are fetched again")


@dataclass(frozen=True)
class Queues:
    quota: int = setting(kinds.integer(1, 100_000), 128, "messages in a queue before senders get QUOTA")
    message_ttl: float = setting(kinds.DURATION, 21 * 86400.0, "messages expire after this time")
    notification_ttl: float = setting(kinds.DURATION, 86400.0, "waiting notifications expire after this time")
    inactive_ttl: float = setting(kinds.DURATION, 0.0, "queues that are unused for this time are deleted; 0: never")
    notification_interval: float = setting(kinds.DURATION, 0.3, "interval between batches of notifications")
    sweep_interval: float = setting(kinds.DURATION, 1.0, "pause between two steps of the expiry sweeper")
    record_cache: int = setting(kinds.integer(0), 100_000, "queue credentials that one edge caches")
    fold_page: int = setting(kinds.integer(1, 10_000), 128, "queues per page of a service's fold")


@dataclass(frozen=True)
class Auth(ControlPasswords):
    new_queues: bool = setting(kinds.BOOL, True, "off: clients cannot create queues")
    create_password: str | None = setting(kinds.PASSWORD, None, "password for new queues and for the proxy")
    daily_block_queue_quota: int = setting(
        kinds.integer(-1), 20, "queues that may be blocked per day; 0: no limit, -1: none"
    )


@dataclass(frozen=True)
class Proxy(OtherRouters):
    enable: bool = setting(kinds.BOOL, True, "forward messages to other routers (PRXY, PFWD)")
    client_concurrency: int = setting(kinds.integer(1), 32, "concurrent forwards per client")
    client_wait: float = setting(kinds.DURATION, 15.0, "time that a forward waits for its turn")
    relay_limit: int = setting(kinds.integer(1), 1000, "connected relays; also the failed relays that are remembered")
    connect_timeout: float = setting(kinds.DURATION, 20.0, "time to connect to a relay")
    request_timeout: float = setting(kinds.DURATION, 15.0, "time that a relay has to answer")
    error_ttl: float = setting(kinds.DURATION, 30.0, "pause before a failed relay is tried again")
    idle_ttl: float = setting(kinds.DURATION, 600.0, "a relay that is unused for this time is disconnected")
    allow_local_relays: bool = setting(kinds.BOOL, False, "allow relays on loopback, private and link-local addresses")


@dataclass(frozen=True)
class RouterConfig:
    transport: Transport = field(default_factory=Transport)
    redis: Redis = field(default_factory=Redis)
    queues: Queues = field(default_factory=Queues)
    auth: Auth = field(default_factory=Auth)
    control: Control = field(default_factory=Control)
    inactive_clients: InactiveClients = field(default_factory=InactiveClients)
    proxy: Proxy = field(default_factory=Proxy)
    drain: Drain = field(default_factory=Drain)
    http: Http = field(default_factory=Http)
    telemetry: Telemetry = field(default_factory=Telemetry)
    rollups: Rollups = field(default_factory=Rollups)
    information: Information = field(default_factory=Information)


SECRETS = frozenset({"password", "create_password", "control_port_admin_password", "control_port_user_password"})


def _check(config: RouterConfig, places: Places) -> list[Problem]:
    """Check the rules that span several settings."""
    at = places.problem
    problems = [
        *transport.check(config.transport, places),
        *redis.check(config.redis, places),
        *surface.check_passwords(config.auth, places),
        *surface.check_information(config.information, places),
        *surface.check_ports(config.http, config.transport.ports, places),
        *check_rollups(config.rollups, places),
    ]
    if config.transport.outgoing_low_bytes >= config.transport.outgoing_bytes:
        problems.append(at("transport", "outgoing_low_bytes", "outgoing_low_bytes: must be below outgoing_bytes"))
    if config.queues.message_ttl < 3600:
        problems.append(at("queues", "message_ttl", "message_ttl: at least 1h"))
    return problems


def _resolve(config: RouterConfig, base: Path) -> RouterConfig:
    """Make relative paths relative to the directory of the configuration file."""
    return replace(config, transport=transport.resolve(config.transport, base), redis=redis.resolve(config.redis, base))


SCHEMA = Schema(
    RouterConfig,
    prefix="WEIR",
    ini=SMP_SERVER_INI,
    check=_check,
    resolve=_resolve,
    # Read by `weir smp ctl`, by weir.crypto.multibuffer and by the embedded Redis.
    other_variables=frozenset({"WEIR_CONTROL_PASSWORD", "WEIR_CRYPTO_MB", "WEIR_REDIS_SERVER"}),
)
load = SCHEMA.load
