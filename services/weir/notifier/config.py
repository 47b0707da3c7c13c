"""All settings of the NTF router, as dataclasses. `load` reads them.

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
from weir.notifier.config_ini import ENVIRONMENT, NTF_SERVER_INI
from weir.redis import settings as redis
from weir.runtime.settings import Drain, InactiveClients, Rollups, check_rollups
from weir.surface import settings as surface
from weir.surface.settings import Control, ControlPasswords, Http, Information
from weir.telemetry.settings import Telemetry
from weir.transport import settings as transport
from weir.transport.settings import Listening, OtherRouters

_STORAGE_KEY = Path("storage.key")


@dataclass(frozen=True)
class Transport(Listening):
    ports: tuple[int, ...] = setting(kinds.PORTS, (443,), "ports to listen on for clients")


@dataclass(frozen=True)
class Redis(redis.Redis):
    prefix: str = setting(
        redis.PREFIX, "ntf", "name in front of all keys; routers with different prefixes can share one Redis"
    )
    lease: float = setting(kinds.DURATION, 4.0, "SMP servers of a crashed edge get another owner after this time")
    storage_key: Path = setting(
        kinds.PATH, _STORAGE_KEY, "file with the deployment's 32-byte key that encrypts stored secrets"
    )


@dataclass(frozen=True)
class Subscriber(OtherRouters):
    """Connections to the SMP servers whose queues have subscriptions."""

    use_service_credentials: bool = setting(
        kinds.BOOL, True, "subscribe to all queues of an SMP server at once, as a service with a certificate"
    )
    allow_local_servers: bool = setting(
        kinds.BOOL, False, "allow SMP servers on loopback, private and link-local addresses"
    )
    connect_timeout: float = setting(kinds.DURATION, 20.0, "time to connect to an SMP server")
    request_timeout: float = setting(kinds.DURATION, 15.0, "time that an SMP server has to answer")


@dataclass(frozen=True)
class Push:
    allow_test: bool = setting(kinds.BOOL, False, "allow tokens of the test provider, which needs no push service")
    queue: int = setting(kinds.integer(1), 1000, "pushes in progress for each provider; the others wait in Redis")
    timeout: float = setting(kinds.DURATION, 20.0, "time that a push service has to answer")


@dataclass(frozen=True)
class Apns:
    key: Path | None = setting(kinds.PATH, None, "file with the .p8 key from Apple; unset: APNs tokens are refused")
    key_id: str | None = setting(kinds.TEXT, None, "id of the key")
    team_id: str | None = setting(kinds.TEXT, None, "id of the developer team")
    topic: str | None = setting(kinds.TEXT, None, "bundle id of the app")
    environment: str = setting(
        kinds.choice("both", "production", "sandbox"), "both", "tokens that are taken: of released apps, of test builds"
    )
    host: str | None = setting(kinds.ADDRESS, None, "host[:port] that is used instead of Apple's")
    ca: Path | None = setting(kinds.PATH, None, "file with the CA certificates of the host; unset: the system's")


@dataclass(frozen=True)
class WebPush:
    vapid_key: Path | None = setting(
        kinds.PATH, None, "file with the key that identifies this router (VAPID), and older ones; unset: no Web Push"
    )
    subject: str | None = setting(kinds.TEXT, None, "mailto: or https: address that push services may write to")
    allow_local: bool = setting(kinds.BOOL, False, "allow push services on loopback, private and link-local addresses")
    ca: Path | None = setting(kinds.PATH, None, "file with CA certificates that are trusted beside the system's")


@dataclass(frozen=True)
class Statistics:
    path: Path | None = setting(kinds.PATH, None, "CSV file that gets a line for every interval; unset: none")
    interval: float = setting(kinds.DURATION, 86400.0, "interval between two lines")
    start: float = setting(kinds.DURATION, 0.0, "time of the first line after midnight (UTC)")


@dataclass(frozen=True)
class Auth(ControlPasswords):
    pass


@dataclass(frozen=True)
class NotifierConfig:
    transport: Transport = field(default_factory=Transport)
    redis: Redis = field(default_factory=Redis)
    subscriber: Subscriber = field(default_factory=Subscriber)
    push: Push = field(default_factory=Push)
    apns: Apns = field(default_factory=Apns)
    web_push: WebPush = field(default_factory=WebPush)
    auth: Auth = field(default_factory=Auth)
    control: Control = field(default_factory=Control)
    inactive_clients: InactiveClients = field(default_factory=InactiveClients)
    drain: Drain = field(default_factory=Drain)
    statistics: Statistics = field(default_factory=Statistics)
    http: Http = field(default_factory=Http)
    telemetry: Telemetry = field(default_factory=Telemetry)
    rollups: Rollups = field(default_factory=Rollups)
    information: Information = field(default_factory=Information)


SECRETS = frozenset({"password", "control_port_admin_password", "control_port_user_password"})


def _check(config: NotifierConfig, places: Places) -> list[Problem]:
    """Check the rules that span several settings."""
    problems = [
        *transport.check(config.transport, places),
        *redis.check(config.redis, places),
        *surface.check_passwords(config.auth, places),
        *surface.check_information(config.information, places),
        *surface.check_ports(config.http, config.transport.ports, places),
        *check_rollups(config.rollups, places),
    ]
    apns = config.apns
    if apns.key is not None:
        missing = [name for name in ("key_id", "team_id", "topic") if getattr(apns, name) is None]
        problems += [places.problem("apns", name, f"{name}: needed with key") for name in missing]
    if config.statistics.path is not None and config.statistics.interval < 1:
        problems.append(places.problem("statistics", "interval", "interval: at least 1s"))
    return problems


def _resolve(config: NotifierConfig, base: Path) -> NotifierConfig:
    """Make relative paths relative to the directory of the configuration file."""
    stored = redis.resolve(config.redis, base)
    return replace(
        config,
        transport=transport.resolve(config.transport, base),
        redis=replace(stored, storage_key=base / stored.storage_key),
        apns=replace(config.apns, key=_below(base, config.apns.key), ca=_below(base, config.apns.ca)),
        web_push=replace(
            config.web_push, vapid_key=_below(base, config.web_push.vapid_key), ca=_below(base, config.web_push.ca)
        ),
        statistics=replace(config.statistics, path=_below(base, config.statistics.path)),
    )


def _below(base: Path, path: Path | None) -> Path | None:
    return None if path is None else base / path


SCHEMA = Schema(
    NotifierConfig,
    prefix="WEIR",
    ini=NTF_SERVER_INI,
    check=_check,
    resolve=_resolve,
    other_names=ENVIRONMENT,
    # Read by `weir ntf ctl`, by weir.crypto.multibuffer and by the embedded Redis.
    other_variables=frozenset({"WEIR_CONTROL_PASSWORD", "WEIR_CRYPTO_MB", "WEIR_REDIS_SERVER"}),
)
load = SCHEMA.load
