"""The NTF router's settings: defaults, the reference's ini and environment, rules between settings."""

import re
from dataclasses import fields
from pathlib import Path

import pytest

from weir.config.schema import ConfigError
from weir.notifier import config as config_module
from weir.notifier.config import SCHEMA, NotifierConfig, load
from weir.surface.settings import Information

REFERENCE_INI = """\
[STORE_LOG]
enable: on
db_connection: postgresql://ntf@/ntf_server_store
db_pool_size: 10
log_stats: off

[AUTH]
control_port_admin_password: admin
control_port_user_password: user

[TRANSPORT]
host: ntf.example.org
port: 443
log_tls_errors: off
control_port: 5227

[SUBSCRIBER]
host_mode: public
required_host_mode: off
own_server_domains: example.org
socks_proxy: localhost:9050
socks_mode: onion
use_service_credentials: off

[INACTIVE_CLIENTS]
disconnect: on
ttl: 43200
check_interval: 3600
"""


def write(directory: Path, text: str, name: str = "weir.toml") -> Path:
    path = directory / name
    path.write_text(text)
    return path


def test_defaults() -> None:
    config = load(None, {})
    assert config.transport.ports == (443,) and config.redis.prefix == "ntf"
    assert config.subscriber.use_service_credentials and not config.subscriber.allow_local_servers
    assert config.apns.key is None and config.web_push.vapid_key is None and not config.push.allow_test


def test_the_references_ini(tmp_path: Path) -> None:
    config = load(write(tmp_path, REFERENCE_INI, "ntf-server.ini"), {})
    assert config.transport.hosts == ("ntf.example.org",) and config.transport.ports == (443,)
    assert config.control.port == 5227
    assert (config.auth.control_port_admin_password, config.auth.control_port_user_password) == ("admin", "user")
    assert config.subscriber.own_server_domains == ("example.org",) and config.subscriber.socks_mode == "onion"
    assert not config.subscriber.use_service_credentials
    assert config.inactive_clients.ttl == 43200


def test_the_references_environment(tmp_path: Path) -> None:
    path = write(tmp_path, '[apns]\nteam_id = "T"\ntopic = "app"\n')
    apns = load(path, {"APNS_KEY_FILE": "/keys/apns.p8", "APNS_KEY_ID": "K"}).apns
    assert (apns.key, apns.key_id) == (Path("/keys/apns.p8"), "K")
    apns = load(path, {"APNS_KEY_FILE": "/keys/apns.p8", "APNS_KEY_ID": "K", "WEIR_APNS_KEY_ID": "L"}).apns
    assert apns.key_id == "L"


def test_paths_are_relative_to_the_file(tmp_path: Path) -> None:
    text = '[apns]\nkey = "a.p8"\nkey_id = "K"\nteam_id = "T"\ntopic = "app"\nca = "a.pem"\n'
    text += '[web_push]\nvapid_key = "v.key"\nca = "w.pem"\n[statistics]\npath = "stats.csv"\n'
    config = load(write(tmp_path, text), {})
    assert config.redis.storage_key == tmp_path / "storage.key"
    assert config.redis.placement_key == tmp_path / "placement.key"
    assert (config.apns.key, config.apns.ca) == (tmp_path / "a.p8", tmp_path / "a.pem")
    assert (config.web_push.vapid_key, config.web_push.ca) == (tmp_path / "v.key", tmp_path / "w.pem")
    assert config.statistics.path == tmp_path / "stats.csv"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('[apns]\nkey = "a.p8"\nteam_id = "T"\ntopic = "app"\n', "key_id: needed with key"),
        ('[statistics]\npath = "x"\ninterval = "0s"\n', "interval: at least 1s"),
        ('[redis]\nprefix = "a b"\n', "prefix: expected a letter"),
        ('[redis]\nlease = "500ms"\n', "lease: at least 1s"),
        ("[transport]\nports = []\n", "ports: at least one is needed"),
        ('[auth]\ncontrol_port_admin_password = "x"\ncontrol_port_user_password = "x"\n', "same as the admin's"),
        ('[information]\noperator = "x"\n', "source_code: needed"),
        ("[queues]\nquota = 1\n", "unknown section [queues]"),
    ],
)
def test_problems_are_named(tmp_path: Path, text: str, problem: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(problem)):
        load(write(tmp_path, text), {})


def test_every_setting_explains_itself() -> None:
    for name, setting in SCHEMA.settings():
        assert setting.metadata["doc"], f"[{name}] {setting.name}"
    assert [f.name for f in fields(NotifierConfig)] == [name for name, _ in SCHEMA.sections()]


def test_every_setting_is_used_somewhere() -> None:
    """A setting that nothing reads would promise what it does not keep."""
    services = Path(config_module.__file__).parents[1]
    others = (
        path
        for path in services.rglob("*.py")
        if path.parent not in (services / "config", services / "router")
        and path.name not in ("config.py", "settings.py")
    )
    code = "\n".join(path.read_text() for path in others)
    published = {f.name for f in fields(Information)}  # shown by name
    for name, setting in SCHEMA.settings():
        if setting.name not in published:
            assert re.search(rf"\.{setting.name}\b", code), f"[{name}] {setting.name}"
