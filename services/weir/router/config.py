"""All settings of the SMP router, as dataclasses. `load` reads them.

A setting `key` of a section is `[section] key` in TOML and `WEIR_SECTION_KEY` in the environment, which wins over the
file. A duration is a number of seconds in these classes, and text such as "300ms", "10s" or "21d" in files.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from pathlib import Path

from weir.config import kinds
from weir.config.file import Problem
from weir.config.kinds import setting
from weir.config.schema import ConfigError, Places, Schema
from weir.router.config_ini import SMP_SERVER_INI
from weir.runtime.settings import Drain, InactiveClients
from weir.surface.settings import Control, Http, Information

_IDENTITY = Path("identity")
_PLACEMENT_KEY = Path("placement.key")


@dataclass(frozen=True)
class Transport:
    hosts: tuple[str, ...] = setting(kinds.ADDRESSES, (), "host names in the published address, in order")
    listen: str = setting(kinds.ADDRESS, "0.0.0.0", "address to listen on for SMP clients")
    ports: tuple[int, ...] = setting(kinds.PORTS, (5223,), "ports to listen on for SMP clients")
    public_port: int = setting(kinds.PORT, 0, "port in the published address; 0: the first of ports")
    identity: Path = setting(kinds.PATH, _IDENTITY, "directory with ca.crt, server.crt and server.key")
    handshake_timeout: float = setting(kinds.DURATION, 60.0, "time for the TLS and SMP handshakes together")
    half_open: int = setting(kinds.integer(1), 1000, "concurrent handshakes; above this, the most silent is dropped")
    send_timeout: float = setting(kinds.DURATION, 40.0, "a client that reads nothing for this time is disconnected")
    outgoing_bytes: int = setting(
        kinds.SIZE, 256 << 10, "queued bytes per client above which its messages stay in Redis"
    )
    outgoing_low_bytes: int = setting(kinds.SIZE, 64 << 10, "queued bytes below which messages are fetched again")
    max_clients: int = setting(kinds.integer(), 0, "clients per edge; 0: as many as file descriptors allow")


@dataclass(frozen=True)
class Redis:
    url: str = setting(
        kinds.TEXT,
        "redis://127.0.0.1:6379/0",
        "redis://, rediss://, unix://, redis+sentinel://h1,h2/NAME or redis+cluster://h1,h2",
    )
    password: str | None = setting(kinds.TEXT, None, "password, if it is not in the URL")
    password_file: Path | None = setting(
        kinds.PATH, None, "file with the password; read for each connection, so that the password can be rotated"
    )
    placement_key: Path = setting(kinds.PATH, _PLACEMENT_KEY, "file with the deployment's 32-byte placement key")
    durability: str = setting(
        kinds.choice("everysec", "fsync", "replicated"), "everysec", "what OK promises: see docs/scale.md"
    )
    replicas: int = setting(kinds.integer(1, 16), 1, "replicas that must confirm a write, with durability = replicated")
    replica_timeout: float = setting(
        kinds.DURATION, 1.0, "time to wait for the replicas before the sender gets an error"
    )
    command_timeout: float = setting(kinds.DURATION, 5.0, "time that a command waits for Redis before ERR INTERNAL")
    connect_timeout: float = setting(kinds.DURATION, 5.0, "time that a starting edge waits for Redis")
    lease: float = setting(kinds.DURATION, 10.0, "subscriptions of a crashed edge are free after this time")


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
class Auth:
    new_queues: bool = setting(kinds.BOOL, True, "off: clients cannot create queues")
    create_password: str | None = setting(kinds.PASSWORD, None, "password for new queues and for the proxy")
    control_port_admin_password: str | None = setting(kinds.PASSWORD, None, "control port: the admin's password")
    control_port_user_password: str | None = setting(kinds.PASSWORD, None, "control port: the user's password")
    daily_block_queue_quota: int = setting(
        kinds.integer(-1), 20, "queues that may be blocked per day; 0: no limit, -1: none"
    )


@dataclass(frozen=True)
class Proxy:
    enable: bool = setting(kinds.BOOL, True, "forward messages to other routers (PRXY, PFWD)")
    client_concurrency: int = setting(kinds.integer(1), 32, "concurrent forwards per client")
    client_wait: float = setting(kinds.DURATION, 15.0, "time that a forward waits for its turn")
    relay_limit: int = setting(kinds.integer(1), 1000, "connected relays; also the failed relays that are remembered")
    connect_timeout: float = setting(kinds.DURATION, 20.0, "time to connect to a relay")
    request_timeout: float = setting(kinds.DURATION, 15.0, "time that a relay has to answer")
    error_ttl: float = setting(kinds.DURATION, 30.0, "pause before a failed relay is tried again")
    idle_ttl: float = setting(kinds.DURATION, 600.0, "a relay that is unused for this time is disconnected")
    allow_local_relays: bool = setting(kinds.BOOL, False, "allow relays on loopback, private and link-local addresses")
    host_mode: str = setting(kinds.choice("public", "onion"), "public", "kind of host to prefer if a relay has several")
    required_host_mode: bool = setting(kinds.BOOL, False, "refuse relays without a host of the kind in host_mode")
    own_server_domains: tuple[str, ...] = setting(kinds.TEXTS, (), "domains of your own relays, counted separately")
    socks_proxy: str | None = setting(kinds.SOCKS, None, "[user:password@]host:port of a SOCKS5 proxy")
    socks_mode: str = setting(
        kinds.choice("onion", "always"), "onion", "relays that are reached through the SOCKS proxy"
    )


@dataclass(frozen=True)
class Telemetry:
    log_level: str = setting(
        kinds.choice("debug", "info", "warning", "error"), "info", "lowest severity that is logged"
    )
    log_format: str = setting(kinds.choice("text", "json"), "text", "format of log lines")
    traces: str | None = setting(
        kinds.TEXT, None, "receiver of spans: http(s)://collector:4318 (OTLP), zipkin+http://host:9411; unset: off"
    )
    sample_ratio: float = setting(kinds.number(0, 1), 0.01, "fraction of commands that are traced")
    trace_sessions: str = setting(
        kinds.choice("off", "services", "all"), "off", "sessions of which every command is traced"
    )


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
    information: Information = field(default_factory=Information)


SECRETS = frozenset({"password", "create_password", "control_port_admin_password", "control_port_user_password"})


def read_placement_key(path: Path) -> bytes:
    """Read the deployment's 32-byte key, which is raw or hexadecimal text."""
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise ConfigError([Problem(str(path), 0, f"cannot be read: {error.strerror}")]) from None
    if len(raw) != 32:
        try:
            raw = bytes.fromhex(raw.decode("ascii").strip())
        except ValueError:
            raw = b""
    if len(raw) != 32:
        raise ConfigError([Problem(str(path), 0, "a placement key is 32 bytes, raw or as 64 hexadecimal digits")])
    return raw


def _check_ports(config: RouterConfig, places: Places) -> list[Problem]:
    """Two servers on one port. Edges share their ports with SO_REUSEPORT, so that the system would not refuse it."""
    http, taken = config.http, dict.fromkeys(config.transport.ports, "in [transport] ports")
    used = [("port", http.port)] if http.port else []
    if used and http.metrics and http.metrics_port:
        used.append(("metrics_port", http.metrics_port))
    problems = []
    for key, port in used:
        if port in taken:
            problems.append(places.problem("http", key, f"{key}: {port} is {taken[port]} already"))
        if http.listen == http.metrics_listen:
            taken[port] = "the port of the web page"
    return problems


def _check(config: RouterConfig, places: Places) -> list[Problem]:
    """Check the rules that span several settings."""
    at = places.problem
    problems = []
    if not config.transport.ports:
        problems.append(at("transport", "ports", "ports: at least one is needed"))
    problems += _check_ports(config, places)
    if config.transport.outgoing_low_bytes >= config.transport.outgoing_bytes:
        problems.append(at("transport", "outgoing_low_bytes", "outgoing_low_bytes: must be below outgoing_bytes"))
    if config.redis.lease < 1:
        problems.append(
            at("redis", "lease", "lease: at least 1s, because a short pause of Redis would disconnect all clients")
        )
    if config.queues.message_ttl < 3600:
        problems.append(at("queues", "message_ttl", "message_ttl: at least 1h"))
    info = config.information
    # The reference server writes hosting_type into every ini, so it does not count as information.
    given = [f.name for f in fields(info) if getattr(info, f.name) and f.name != "hosting_type"]
    if info.source_code is None and given:
        problems.append(at("information", given[0], "source_code: needed when any other information is given"))
    admin, user = config.auth.control_port_admin_password, config.auth.control_port_user_password
    if admin is not None and admin == user:
        problems.append(at("auth", "control_port_user_password", "control_port_user_password: same as the admin's"))
    return problems


def _resolve(config: RouterConfig, base: Path) -> RouterConfig:
    """Make relative paths relative to the directory of the configuration file."""
    redis = config.redis
    password_file = base / redis.password_file if redis.password_file is not None else None
    return replace(
        config,
        transport=replace(config.transport, identity=base / config.transport.identity),
        redis=replace(redis, placement_key=base / redis.placement_key, password_file=password_file),
    )


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
