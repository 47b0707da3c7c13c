"""The settings of `weir up`, from options, weir.toml and the environment."""

import argparse
from pathlib import Path

from weir.cli.up_settings import UpSettings
from weir.router.config import SCHEMA, RouterConfig, load


def test_the_command_line_wins_over_the_file_and_the_file_over_defaults(tmp_path: Path) -> None:
    path = tmp_path / "weir.toml"
    path.write_text(
        '[transport]\nhosts = ["smp.example.org"]\nlisten = "127.0.0.2"\nports = [5223, 443]\npublic_port = 443\n'
        '[redis]\nurl = "redis://127.0.0.1:6379/0"\n[http]\nport = 0\n'
    )
    none = argparse.Namespace(host=None, listen=None, smp_port=None, http_port=None, redis=None)
    told = argparse.Namespace(host="::1", listen=None, smp_port=0, http_port=0, redis="embedded")
    config, named = load(path, {}), SCHEMA.given(path, {})
    assert UpSettings.of(none, RouterConfig(), set()) == UpSettings(
        ("127.0.0.1",), "127.0.0.1", (5223,), 0, "127.0.0.1", 8000, "embedded"
    )
    assert UpSettings.of(none, config, named) == UpSettings(
        ("smp.example.org",), "127.0.0.2", (5223, 443), 443, "127.0.0.2", None, "redis://127.0.0.1:6379/0"
    )
    assert UpSettings.of(told, config, named) == UpSettings(("::1",), "127.0.0.2", (0,), 0, "127.0.0.2", 0, "embedded")
