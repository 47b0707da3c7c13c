"""Argument parsers whose help teaches: a description, the options with their defaults, examples."""

from __future__ import annotations

import argparse
from pathlib import Path

from weir.cli.errors import Fail
from weir.router.config import ConfigError, RouterConfig, load
from weir.wire.address import SmpAddress


class _Formatter(argparse.RawDescriptionHelpFormatter):
    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=32, width=100)


def parser(program: str, description: str, examples: str) -> argparse.ArgumentParser:
    return argparse.ArgumentParser(
        prog=program,
        description=description,
        epilog=f"examples:\n{_indent(examples)}",
        formatter_class=_Formatter,
        allow_abbrev=False,
    )


def _indent(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.strip().splitlines())


def load_config(path: Path | None) -> RouterConfig:
    try:
        return load(path)
    except ConfigError as error:
        raise Fail(str(error)) from None


def port(text: str) -> int:
    value = int(text) if text.isdecimal() else -1
    if not 0 <= value <= 65535:
        raise argparse.ArgumentTypeError(f"{text!r} is not a port")
    return value


def positive(text: str) -> int:
    value = int(text) if text.isdecimal() else 0
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a positive number")
    return value


def host(text: str) -> str:
    address = SmpAddress(bytes(32), (text,))
    if SmpAddress.parse(str(address)) != address:
        raise argparse.ArgumentTypeError(f"{text!r} is not a host name or an IP address")
    return text
