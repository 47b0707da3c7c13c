"""Everything an operator can set, in one tree of dataclasses; `load` reads it from one file and the environment.

A setting `key` of a section is `[section] key` in TOML and `WEIR_SECTION_KEY` in the environment (which wins).
Durations are seconds here, and "300ms", "10s", "6h", "21d" in files.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import Field, dataclass, field, fields, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from weir.router import config_kinds as kinds
from weir.router.config_file import Problem, Raw, read_config_file
from weir.router.config_kinds import setting

_IDENTITY = Path("identity")
_PLACEMENT_KEY = Path("placement.key")


class ConfigError(Exception):
    """Every problem of a configuration at once, each with its file and line."""

    def __init__(self, problems: list[Problem]) -> None:
        super().__init__("\n".join(str(problem) for problem in problems))
        self.problems = problems


@dataclass(frozen=True)
class Transport:
    hosts: tuple[str, ...] = setting(kinds.ADDRESSES, (), "host names in the published address, in order")
    listen: str = setting(kinds.ADDRESS, "0.0.0.0", "address to listen on for SMP clients")
    ports: tuple[int, ...] = setting(kinds.PORTS, (5223,), "ports to listen on for SMP clients")
    public_port: int = setting(kinds.PORT, 0, "port in the published address; 0: the first of ports")
    identity: Path = setting(kinds.PATH, _IDENTITY, "directory with ca.crt, server.crt and server.key")
    handshake_timeout: float = setting(kinds.DURATION, 60.0, "time for the TLS and SMP handshakes together")
    half_open: int = setting(kinds.integer(1), 1000, "handshakes under way at once; beyond that the slowest is dropped")
    send_timeout: float = setting(kinds.DURATION, 40.0, "a client that takes nothing for so long is cut off")
    outgoing_bytes: int = setting(
        kinds.SIZE, 256 << 10, "bytes waiting for one client above which its messages stay ids in Redis"
    )
    outgoing_low_bytes: int = setting(kinds.SIZE, 64 << 10, "bytes waiting below which messages are fetched again")
    max_clients: int = setting(kinds.integer(), 0, "clients on one edge at once; 0: as many as there are descriptors")


@dataclass(frozen=True)
class Redis:
    url: str = setting(
        kinds.TEXT,
        "redis://127.0.0.1:6379/0",
        "redis://, rediss://, unix://, redis+sentinel://h1,h2/NAME or redis+cluster://h1,h2",
    )
    password: str | None = setting(kinds.TEXT, None, "password, when it is not in the URL")
    placement_key: Path = setting(kinds.PATH, _PLACEMENT_KEY, "file with the deployment's 32-byte placement key")
    durability: str = setting(
        kinds.choice("everysec", "fsync", "replicated"), "everysec", "what OK promises: see docs/scale.md"
    )
    replicas: int = setting(kinds.integer(1, 16), 1, "replicas that must have a write, with durability = replicated")
    replica_timeout: float = setting(kinds.DURATION, 1.0, "time to wait for them before the sender gets an error")
    command_timeout: float = setting(kinds.DURATION, 5.0, "time a command waits for Redis before ERR INTERNAL")
    connect_timeout: float = setting(kinds.DURATION, 5.0, "time an edge waits for Redis when it starts")
    lease: float = setting(kinds.DURATION, 10.0, "an edge that has not renewed its lease for so long is vacant")


@dataclass(frozen=True)
class Queues:
    quota: int = setting(kinds.integer(1, 100_000), 128, "messages a queue holds before senders get QUOTA")
    message_ttl: float = setting(kinds.DURATION, 21 * 86400.0, "messages expire after this time")
    notification_ttl: float = setting(kinds.DURATION, 86400.0, "notifications that wait for a notifier expire")
    inactive_ttl: float = setting(kinds.DURATION, 0.0, "queues unused for so long are deleted; 0: never")
    notification_interval: float = setting(kinds.DURATION, 0.3, "notifications are delivered in batches this often")
    sweep_interval: float = setting(kinds.DURATION, 1.0, "pause between two slices of the expiry sweeper")
    record_cache: int = setting(kinds.integer(0), 100_000, "queue credentials one edge keeps in memory")
    fold_page: int = setting(kinds.integer(1, 10_000), 128, "queues per page when a service's messages are folded")


@dataclass(frozen=True)
class Auth:
    new_queues: bool = setting(kinds.BOOL, True, "off: no new queues at all")
    create_password: str | None = setting(kinds.PASSWORD, None, "password for new queues and for the proxy")
    control_port_admin_password: str | None = setting(kinds.PASSWORD, None, "control port: the admin's password")
    control_port_user_password: str | None = setting(kinds.PASSWORD, None, "control port: the user's password")
    daily_block_queue_quota: int = setting(
        kinds.integer(-1), 20, "queues that may be blocked a day; 0: no limit, -1: none"
    )


@dataclass(frozen=True)
class Control:
    port: int = setting(kinds.PORT, 0, "control port; 0: off (the reference's is 5224)")
    listen: str = setting(kinds.ADDRESS, "127.0.0.1", "address the control port listens on")


@dataclass(frozen=True)
class InactiveClients:
    disconnect: bool = setting(kinds.BOOL, True, "disconnect clients without subscriptions that stay silent")
    ttl: float = setting(kinds.DURATION, 6 * 3600.0, "after this time")
    check_interval: float = setting(kinds.DURATION, 3600.0, "checked this often")


@dataclass(frozen=True)
class Proxy:
    enable: bool = setting(kinds.BOOL, True, "forward messages to other routers (PRXY, PFWD)")
    client_concurrency: int = setting(kinds.integer(1), 32, "forwards under way at once for one client")
    client_wait: float = setting(kinds.DURATION, 15.0, "time a forward waits for its turn")
    relay_limit: int = setting(kinds.integer(1), 1000, "relays connected at once")
    connect_timeout: float = setting(kinds.DURATION, 20.0, "time to connect to a relay")
    request_timeout: float = setting(kinds.DURATION, 15.0, "time a relay has to answer")
    error_ttl: float = setting(kinds.DURATION, 30.0, "a relay that failed is not tried again for so long")
    idle_ttl: float = setting(kinds.DURATION, 600.0, "a relay nobody uses for so long is disconnected")
    allow_local_relays: bool = setting(kinds.BOOL, False, "allow relays on loopback, private and link-local addresses")
    host_mode: str = setting(kinds.choice("public", "onion"), "public", "which of a relay's hosts to prefer")
    required_host_mode: bool = setting(kinds.BOOL, False, "refuse relays without a host of that kind")
    own_server_domains: tuple[str, ...] = setting(kinds.TEXTS, (), "domains of your own relays, counted apart")
    socks_proxy: str | None = setting(kinds.SOCKS, None, "[user:password@]host:port of a SOCKS5 proxy")
    socks_mode: str = setting(kinds.choice("onion", "always"), "onion", "which relays are reached through it")


@dataclass(frozen=True)
class Drain:
    grace: float = setting(kinds.DURATION, 30.0, "time an edge has to stop after SIGTERM")
    rate: int = setting(kinds.integer(1), 500, "clients it disconnects per second meanwhile")


@dataclass(frozen=True)
class Http:
    port: int = setting(kinds.PORT, 8000, "port of the server page, health and metrics; 0: off")
    listen: str = setting(kinds.ADDRESS, "0.0.0.0", "address it listens on")
    page: bool = setting(kinds.BOOL, True, "show the server page; off: health and metrics only")
    metrics: bool = setting(kinds.BOOL, True, "serve /metrics and /metrics/edge")


@dataclass(frozen=True)
class Telemetry:
    log_level: str = setting(kinds.choice("debug", "info", "warning", "error"), "info", "least severe line logged")
    log_format: str = setting(kinds.choice("text", "json"), "text", "form of log lines")
    traces: str | None = setting(
        kinds.TEXT, None, "where spans go: http(s)://collector:4318 (OTLP), zipkin+http://host:9411; unset: off"
    )
    sample_ratio: float = setting(kinds.number(0, 1), 0.01, "share of commands that are traced")
    trace_sessions: str = setting(
        kinds.choice("off", "services", "all"), "off", "sessions whose every command is traced, whatever the ratio"
    )


@dataclass(frozen=True)
class Information:
    """What the operator publishes about the server (the reference's INFORMATION section)."""

    source_code: str | None = setting(kinds.TEXT, None, "where the source of this very server is (AGPL)")
    usage_conditions: str | None = setting(kinds.TEXT, None, "link to the conditions of use")
    condition_amendments: str | None = setting(kinds.TEXT, None, "link to amendments of them")
    server_country: str | None = setting(kinds.COUNTRY, None, "where the server is")
    operator: str | None = setting(kinds.TEXT, None, "who runs it")
    operator_country: str | None = setting(kinds.COUNTRY, None, "where they are")
    website: str | None = setting(kinds.TEXT, None, "their web site")
    admin_simplex: str | None = setting(kinds.TEXT, None, "administrator: SimpleX address")
    admin_email: str | None = setting(kinds.TEXT, None, "administrator: e-mail")
    admin_pgp: str | None = setting(kinds.TEXT, None, "administrator: link to a PGP key")
    admin_pgp_fingerprint: str | None = setting(kinds.TEXT, None, "administrator: its fingerprint")
    complaints_simplex: str | None = setting(kinds.TEXT, None, "complaints: SimpleX address")
    complaints_email: str | None = setting(kinds.TEXT, None, "complaints: e-mail")
    complaints_pgp: str | None = setting(kinds.TEXT, None, "complaints: link to a PGP key")
    complaints_pgp_fingerprint: str | None = setting(kinds.TEXT, None, "complaints: its fingerprint")
    hosting: str | None = setting(kinds.TEXT, None, "hosting provider")
    hosting_country: str | None = setting(kinds.COUNTRY, None, "where it is")
    hosting_type: str | None = setting(
        kinds.choice("virtual", "dedicated", "colocation", "owned"), None, "kind of hosting"
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


_NO_SETTINGS = {"WEIR_CONTROL_PASSWORD", "WEIR_REDIS_SERVER"}  # of `weir smp ctl` and of the embedded Redis
SECRETS = frozenset({"password", "create_password", "control_port_admin_password", "control_port_user_password"})


def sections() -> Iterator[tuple[str, type[Any]]]:
    """(name, dataclass) of every section, in the order they are documented."""
    for section in fields(RouterConfig):
        yield section.name, section.default_factory  # type: ignore[misc]


def settings_of(section: type[Any]) -> Iterator[Field[Any]]:
    yield from fields(section)


def environment_name(section: str, key: str) -> str:
    return f"WEIR_{section}_{key}".upper()


def unknown_in_environment(environ: Mapping[str, str]) -> list[Problem]:
    """Names that look like a setting's and are none. `load` passes over them: others may have set them."""
    names = {environment_name(section, f.name) for section, cls in sections() for f in settings_of(cls)}
    prefixes = tuple(environment_name(section, "") for section, _ in sections())
    problems = []
    for name in sorted(environ):
        if name.startswith(prefixes) and name.removesuffix("_FILE") not in names | _NO_SETTINGS:
            close = get_close_matches(name, names, 1)
            hint = f" (did you mean {close[0]}?)" if close else ""
            problems.append(Problem("environment", 0, f"unknown setting {name}{hint}"))
    return problems


def load(path: Path | None = None, environ: Mapping[str, str] | None = None) -> RouterConfig:
    """The defaults, the file, then the environment; raises ConfigError with every problem found."""
    environ = os.environ if environ is None else environ
    problems: list[Problem] = []
    raws = read_config_file(path, problems) if path is not None else []
    raws += _environment(environ, problems)
    return _resolved(settle(raws, problems, path), path)


def given(path: Path | None, environ: Mapping[str, str] | None = None) -> set[tuple[str, str]]:
    """(section, key) of what the file and the environment name, whatever the values."""
    raws = read_config_file(path, []) if path is not None else []
    return {(raw.section, raw.key) for raw in raws + _environment(os.environ if environ is None else environ, [])}


def settle(raws: list[Raw], problems: list[Problem], path: Path | None) -> RouterConfig:
    """What the raw settings say, later ones winning; raises ConfigError with every problem, those known before too."""
    values: dict[str, dict[str, Any]] = {name: {} for name, _ in sections()}
    places: dict[tuple[str, str], Raw] = {}
    schema = {name: {f.name: f for f in settings_of(cls)} for name, cls in sections()}
    for raw in raws:
        if raw.section not in schema:
            problems.append(raw.problem(f"unknown section [{raw.shown_section}]"))
        elif not raw.key:
            continue  # an empty section
        elif raw.key not in schema[raw.section]:
            known = ", ".join(schema[raw.section])
            problems.append(raw.problem(f"unknown key {raw.shown_key} in [{raw.shown_section}] (known: {known})"))
        else:
            try:
                values[raw.section][raw.key] = schema[raw.section][raw.key].metadata["kind"].read(raw.value)
                places[raw.section, raw.key] = raw
            except ValueError as error:
                problems.append(raw.problem(f"{raw.shown_key}: {error}"))
    config = RouterConfig(**{name: cls(**values[name]) for name, cls in sections()})
    problems += _across(config, places, path)
    if problems:
        raise ConfigError(problems)
    return config


def read_placement_key(path: Path) -> bytes:
    """The deployment's 32-byte key, raw or as hexadecimal text."""
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


def _environment(environ: Mapping[str, str], problems: list[Problem]) -> list[Raw]:
    raws = []
    for section, cls in sections():
        for setting_ in settings_of(cls):
            name = environment_name(section, setting_.name)
            if name in environ:
                raws.append(Raw(section, setting_.name, environ[name], "environment", 0, shown_key=name))
            elif name + "_FILE" in environ:
                try:
                    text = Path(environ[name + "_FILE"]).read_text("utf-8").strip()
                    raws.append(Raw(section, setting_.name, text, "environment", 0, shown_key=name))
                except OSError as error:
                    problems.append(Problem("environment", 0, f"{name}_FILE: {error.strerror}"))
    return raws


def _across(config: RouterConfig, places: dict[tuple[str, str], Raw], path: Path | None) -> list[Problem]:
    """Rules between settings."""

    def at(section: str, key: str, text: str) -> Problem:
        raw = places.get((section, key))
        return raw.problem(text) if raw else Problem(str(path or "defaults"), 0, f"[{section}] {key}: {text}")

    problems = []
    if not config.transport.ports:
        problems.append(at("transport", "ports", "ports: at least one is needed"))
    if config.transport.outgoing_low_bytes >= config.transport.outgoing_bytes:
        problems.append(at("transport", "outgoing_low_bytes", "outgoing_low_bytes: must be below outgoing_bytes"))
    if config.redis.lease < 1:
        problems.append(at("redis", "lease", "lease: at least 1s, or edges lose their clients at every hiccup"))
    if config.queues.message_ttl < 3600:
        problems.append(at("queues", "message_ttl", "message_ttl: at least 1h"))
    info = config.information
    # The kind of hosting alone says nothing: the reference writes it into every ini.
    given = [f.name for f in fields(info) if getattr(info, f.name) and f.name != "hosting_type"]
    if info.source_code is None and given:
        problems.append(at("information", given[0], "source_code: needed when any other information is given"))
    admin, user = config.auth.control_port_admin_password, config.auth.control_port_user_password
    if admin is not None and admin == user:
        problems.append(at("auth", "control_port_user_password", "control_port_user_password: same as the admin's"))
    return problems


def _resolved(config: RouterConfig, path: Path | None) -> RouterConfig:
    """Relative paths are relative to the file they stand in."""
    base = path.parent if path is not None else Path()
    return replace(
        config,
        transport=replace(config.transport, identity=base / config.transport.identity),
        redis=replace(config.redis, placement_key=base / config.redis.placement_key),
    )
