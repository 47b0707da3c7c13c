"""The settings of `weir up`, from options, weir.toml and the environment."""

import argparse
from pathlib import Path

import pytest

from weir.cli.programs import SMP
from weir.cli.up_settings import UpSettings
from weir.router.config import SCHEMA, RouterConfig, load


def test_the_command_line_wins_over_the_file_and_the_file_over_defaults(tmp_path: Path) -> None:
    path = tmp_path / "weir.toml"
    path.write_text(
        '[transport]\nhosts = ["smp.example.org"]\nlisten = "127.0.0.2"\nports = [5223, 443]\npublic_port = 443\n'
        '[redis]\nurl = "redis://127.0.0.1:6379/0"\n[http]\nport = 0\n'
    )
    none = argparse.Namespace(host=None, listen=None, smp_port=None, http_port=None, metrics_port=None, redis=None)
    told = argparse.Namespace(host="::1", listen=None, smp_port=0, http_port=0, metrics_port=None, redis="embedded")
    config, named = load(path, {}), SCHEMA.given(path, {})
    assert UpSettings.of(SMP, none, RouterConfig(), set()) == UpSettings(
        SMP, ("127.0.0.1",), "127.0.0.1", (5223,), 0, "127.0.0.1", 8000, True, "127.0.0.1", 8001, "embedded"
    )
    assert UpSettings.of(SMP, none, config, named) == UpSettings(
        SMP,
        ("smp.example.org",),
        "127.0.0.2",
        (5223, 443),
        443,
        "127.0.0.2",
        None,
        True,
        "127.0.0.1",
        None,
        "redis://127.0.0.1:6379/0",
    )
    assert UpSettings.of(SMP, told, config, named) == UpSettings(
        SMP, ("::1",), "127.0.0.2", (0,), 0, "127.0.0.2", 0, True, "127.0.0.1", 0, "embedded"
    )


@pytest.mark.parametrize(
    ("toml", "option", "metrics_port", "metrics_listen"),
    [
        ("", None, 8001, "127.0.0.1"),
        ("[http]\nport = 9000\n", None, 9001, "127.0.0.1"),
        ("[http]\nport = 65535\n", None, 0, "127.0.0.1"),
        ("[http]\nport = 0\n", None, None, "127.0.0.1"),
        ("[http]\nmetrics = false\n", None, None, "127.0.0.1"),
        ("[http]\nmetrics_port = 0\n", None, None, "127.0.0.1"),
        ('[http]\nmetrics_port = 7\nmetrics_listen = "0.0.0.0"\n', None, 7, "0.0.0.0"),
        ("[http]\nmetrics_port = 7\n", 9, 9, "127.0.0.1"),
    ],
)
def test_metrics_stay_on_loopback_unless_told_otherwise(
    tmp_path: Path, toml: str, option: int | None, metrics_port: int | None, metrics_listen: str
) -> None:
    path = tmp_path / "weir.toml"
    path.write_text(toml)
    options = argparse.Namespace(
        host="smp.example.org", listen=None, smp_port=None, http_port=None, metrics_port=option, redis=None
    )
    settings = UpSettings.of(SMP, options, load(path, {}), SCHEMA.given(path, {}))
    assert (settings.metrics_port, settings.metrics_listen) == (metrics_port, metrics_listen)
    assert settings.http_listen == "0.0.0.0"
