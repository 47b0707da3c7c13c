"""Every setting: its default, its place in a file, its environment variable, and what is said when it is wrong."""

import re
from dataclasses import fields
from pathlib import Path

import pytest

from weir.config.schema import ConfigError
from weir.redis.settings import read_key
from weir.router import config as config_module
from weir.router.config import SCHEMA, RouterConfig, load
from weir.surface.settings import Information


def write(directory: Path, text: str, name: str = "weir.toml") -> Path:
    path = directory / name
    path.write_text(text)
    return path


def problems(path: Path | None, environ: dict[str, str] | None = None) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        load(path, environ or {})
    return [str(problem) for problem in caught.value.problems]


def test_the_defaults_are_the_references() -> None:
    config = load(None, {})
    assert config.queues.quota == 128
    assert config.queues.message_ttl == 21 * 86400
    assert config.queues.notification_ttl == 24 * 3600
    assert config.queues.notification_interval == 0.3
    assert (config.inactive_clients.ttl, config.inactive_clients.check_interval) == (6 * 3600, 3600)
    assert config.auth.new_queues and config.auth.daily_block_queue_quota == 20
    assert config.proxy.enable and config.proxy.client_concurrency == 32
    assert config.redis.lease == 10
    assert config.transport.ports == (5223,)
    assert config.control.listen == "127.0.0.1"


def test_a_file_sets_and_the_environment_wins(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        """
        [transport]
        hosts = ["smp.example.org", "abc.onion"]
        ports = [5223, 443]
        [queues]
        quota = 64
        message_ttl = "14d"
        [auth]
        new_queues = false
        """,
    )
    config = load(path, {"WEIR_QUEUES_QUOTA": "32", "WEIR_DRAIN_GRACE": "500ms"})
    assert config.transport.hosts == ("smp.example.org", "abc.onion")
    assert config.transport.ports == (5223, 443)
    assert config.queues.message_ttl == 14 * 86400
    assert config.queues.quota == 32
    assert config.auth.new_queues is False
    assert config.drain.grace == 0.5


def test_relative_paths_are_relative_to_the_file(tmp_path: Path) -> None:
    config = load(write(tmp_path, '[transport]\nidentity = "id"\n'), {"WEIR_REDIS_PLACEMENT_KEY": "/keys/k"})
    assert config.transport.identity == tmp_path / "id"
    assert config.redis.placement_key == Path("/keys/k")


def test_a_secret_can_come_from_a_file(tmp_path: Path) -> None:
    secret = write(tmp_path, "s3cret\n", "password")
    assert load(None, {"WEIR_AUTH_CREATE_PASSWORD_FILE": str(secret)}).auth.create_password == "s3cret"
    assert problems(None, {"WEIR_AUTH_CREATE_PASSWORD_FILE": str(tmp_path / "none")}) == [
        "environment: WEIR_AUTH_CREATE_PASSWORD_FILE: No such file or directory"
    ]


@pytest.mark.parametrize(("section", "cls"), list(SCHEMA.sections()))
def test_every_setting_can_be_set_by_its_own_default(section: str, cls: type) -> None:
    """`kind.read` accepts the text of `kind.show`: through the environment, for every setting."""
    for setting in fields(cls):
        if setting.default is None:
            continue
        shown = setting.metadata["kind"].show(setting.default)
        config = load(None, {SCHEMA.environment_name(section, setting.name): shown})
        assert getattr(getattr(config, section), setting.name) == setting.default, setting.name


def test_every_problem_is_named_with_its_line(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        "\n".join(
            (
                "[transport]",  # 1
                'hosts = ["a"]',
                "colour = 1",  # 3
                "ports = [70000]",  # 4
                "",
                "[shape]",  # 6
                "round = true",  # 7
                "[queues]",
                'message_ttl = "21 moons"',  # 9
                "quota = 0",  # 10
                'redis.url = "redis://x"',  # 11: a dotted key inside of [queues]
                "",
            )
        ),
    )
    found = problems(path, {"WEIR_REDIS_DURABILITY": "maybe"})
    assert [line.removeprefix(f"{path}:") for line in found] == [
        found[0].removeprefix(f"{path}:"),
        "4: ports: expected a number from 0 to 65535",
        "7: unknown section [shape]",
        '9: message_ttl: expected a time such as "300ms", "10s", "5m", "6h" or "21d"',
        "10: quota: expected a number from 1 to 100000",
        found[5].removeprefix(f"{path}:"),
        "environment: WEIR_REDIS_DURABILITY: expected one of everysec, fsync, replicated",
    ]
    assert found[0].startswith(f"{path}:3: unknown key colour in [transport] (known: hosts, listen, ports")
    assert found[5].startswith(f"{path}:11: unknown key redis in [queues]")


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        ("[transport\nports = [1]", 1, "expected ']'"),
        ("[redis]\nurl = unquoted", 2, "invalid value"),
        ("[redis]\nurl = 'a'\nurl = 'b'", 3, "cannot overwrite a value"),
        ("quota = 3\n", 1, "quota is outside of a [section]"),
        ("[shape]\n", 1, "unknown section [shape]"),
        ("[queues]\n[[shape]]\nround = true\n", 2, "shape is outside of a [section]"),
    ],
)
def test_what_is_no_toml_is_named_with_its_line(tmp_path: Path, text: str, line: int, says: str) -> None:
    path = write(tmp_path, text)
    (found,) = problems(path)
    assert found.startswith(f"{path}:{line}: ")
    assert says in found


@pytest.mark.parametrize(
    ("setting", "value", "says"),
    [
        ("AUTH_CREATE_PASSWORD", "two words", "expected printable ASCII without spaces"),
        ("AUTH_CREATE_PASSWORD", "a@b", "expected printable ASCII without spaces"),
        ("AUTH_NEW_QUEUES", "perhaps", "expected on or off"),
        ("TRANSPORT_LISTEN", "a/b", "expected a host name or an IP address"),
        ("TRANSPORT_HOSTS", "<your-host>", "expected a host name or an IP address"),
        ("TRANSPORT_OUTGOING_BYTES", "64KB", "expected a size"),
        ("TELEMETRY_SAMPLE_RATIO", "2", "expected a number from 0 to 1"),
        ("INFORMATION_SERVER_COUNTRY", "Germany", "expected a 2-letter ISO 3166 code"),
        ("REDIS_LEASE", "100ms", "at least 1s"),
        ("QUEUES_MESSAGE_TTL", "5m", "at least 1h"),
        ("TRANSPORT_OUTGOING_LOW_BYTES", "1MiB", "must be below outgoing_bytes"),
        ("INFORMATION_OPERATOR", "Somebody", "source_code: needed when any other information is given"),
    ],
)
def test_a_bad_value_says_what_was_expected(setting: str, value: str, says: str) -> None:
    (found,) = problems(None, {f"WEIR_{setting}": value})
    assert says in found


def test_the_two_control_port_passwords_differ() -> None:
    (found,) = problems(
        None, {"WEIR_AUTH_CONTROL_PORT_ADMIN_PASSWORD": "x", "WEIR_AUTH_CONTROL_PORT_USER_PASSWORD": "x"}
    )
    assert "same as the admin's" in found


@pytest.mark.parametrize(
    ("ports", "says"),
    [
        ("transport.ports = 8000", "port: 8000 is in [transport] ports already"),
        ("transport.ports = [5223, 8001]", "metrics_port: 8001 is in [transport] ports already"),
        (
            'http.metrics_port = 8000\nhttp.listen = "127.0.0.1"',
            "metrics_port: 8000 is the port of the web page already",
        ),
        ("http.metrics_port = 8000", None),  # each has an address of its own
        ("transport.ports = 8000\nhttp.port = 0", None),
        ("transport.ports = 8001\nhttp.metrics = false", None),
        ("transport.ports = 0", None),
        ("http.metrics_port = 0", None),
    ],
)
def test_two_servers_do_not_share_a_port(tmp_path: Path, ports: str, says: str | None) -> None:
    """The system would not refuse it: edges share their ports with SO_REUSEPORT."""
    path = tmp_path / "weir.toml"
    path.write_text(ports)
    if says is None:
        load(path, {})
    else:
        (found,) = problems(path, {})
        assert found.endswith(says)


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    assert problems(tmp_path / "none.toml") == [f"{tmp_path / 'none.toml'}: cannot be read: No such file or directory"]
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe")
    assert problems(tmp_path / "binary.toml") == [f"{tmp_path / 'binary.toml'}: is not UTF-8 text"]


REFERENCE_INI = """\
[INFORMATION]
# comment
source_code = https://example.org/source
operator = Example
operator_country = de
hosting_type = virtual

[STORE_LOG]
enable = on
expire_messages_days = 14
expire_ntfs_hours = 12
log_stats: off

[AUTH]
new_queues: on
create_password = word

[TRANSPORT]
host = smp.example.org,abc.onion
port = 5223,443
websockets = off
control_port = 5224

[PROXY]
own_server_domains = a.org b.org

[INACTIVE_CLIENTS]
disconnect = on
ttl = 7200
check_interval = 600

[WEB]
http = 8001

[REDIS]
url = redis://r/0
"""


def test_the_references_ini_is_read_and_may_hold_our_sections(tmp_path: Path) -> None:
    config = load(write(tmp_path, REFERENCE_INI, "smp-server.ini"), {})
    assert config.transport.hosts == ("smp.example.org", "abc.onion")
    assert config.transport.ports == (5223, 443)
    assert config.control.port == 5224
    assert config.queues.message_ttl == 14 * 86400
    assert config.queues.notification_ttl == 12 * 3600
    assert config.auth.create_password == "word"
    assert config.proxy.own_server_domains == ("a.org", "b.org")
    assert (config.inactive_clients.ttl, config.inactive_clients.check_interval) == (7200, 600)
    assert config.information.operator_country == "DE"
    assert config.http.port == 8001
    assert config.redis.url == "redis://r/0"


def test_problems_of_an_ini_name_its_own_words(tmp_path: Path) -> None:
    path = write(tmp_path, "[TRANSPORT]\nport = many\ncolour = 1\n[SHAPE]\nround = yes\nnonsense\n", "smp-server.ini")
    found = problems(path)
    assert found[0] == f"{path}:6: expected [SECTION] or key = value"
    assert found[1] == f"{path}:2: port: expected a whole number"
    assert found[2].startswith(f"{path}:3: unknown key colour in [TRANSPORT]")
    assert found[3] == f"{path}:5: unknown section [SHAPE]"


def test_a_placement_key_is_32_bytes(tmp_path: Path) -> None:
    raw, text, bad = tmp_path / "raw", tmp_path / "text", tmp_path / "bad"
    raw.write_bytes(bytes(range(32)))
    text.write_text(bytes(range(32)).hex() + "\n")
    bad.write_text("short")
    assert read_key(raw, "a placement key") == read_key(text, "a placement key") == bytes(range(32))
    for path in (bad, tmp_path / "none"):
        with pytest.raises(ConfigError, match=str(path)):
            read_key(path, "a placement key")


def test_every_setting_explains_itself() -> None:
    for name, setting in SCHEMA.settings():
        assert setting.metadata["doc"], f"[{name}] {setting.name}"
    assert [f.name for f in fields(RouterConfig)] == [name for name, _ in SCHEMA.sections()]


def test_every_setting_is_used_somewhere() -> None:
    """A setting that nothing reads would promise what it does not keep."""
    services = Path(config_module.__file__).parents[1]
    own = {services / "router" / "config.py", services / "router" / "config_ini.py"}
    others = (path for path in services.rglob("*.py") if path not in own and path.parent != services / "config")
    code = "\n".join(path.read_text() for path in others)
    published = {f.name for f in fields(Information)}  # shown by name
    for name, setting in SCHEMA.settings():
        if setting.name not in published:
            assert re.search(rf"\.{setting.name}\b", code), f"[{name}] {setting.name}"


def test_the_password_of_redis_is_read_by_its_connections(tmp_path: Path) -> None:
    """WEIR_REDIS_PASSWORD_FILE names the file, which need not be there yet."""
    path = write(tmp_path, '[redis]\npassword_file = "word"\n')
    assert load(path, {}).redis.password_file == tmp_path / "word"
    redis = load(path, {"WEIR_REDIS_PASSWORD_FILE": "/etc/word"}).redis
    assert (redis.password, redis.password_file) == (None, Path("/etc/word"))
    assert load(None, {}).redis.password_file is None
