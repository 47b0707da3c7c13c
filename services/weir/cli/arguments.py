"""Argument parsers and the options that several commands share.

Every command's help has a description, all options with their defaults, and examples. An option that cannot be used is
refused in one line; an option with a range names the range.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from weir.cli.errors import Fail, os_error
from weir.cli.programs import SMP, Program
from weir.config.options import Parser, whole
from weir.config.schema import ConfigError
from weir.wire.address import SmpAddress

if TYPE_CHECKING:
    from weir.router.config import RouterConfig


class _Formatter(argparse.RawDescriptionHelpFormatter):
    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=32, width=100)


def parser(program: str, description: str, examples: str) -> argparse.ArgumentParser:
    return Parser(
        prog=program,
        description=description,
        epilog=f"examples:\n{_indent(examples)}",
        formatter_class=_Formatter,
        allow_abbrev=False,
    )


def _indent(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.strip().splitlines())


def add_certificate_options(p: argparse.ArgumentParser) -> None:
    p.add_argument(
        "--algorithm",
        choices=("ed25519", "ed448"),
        default="ed25519",
        help="algorithm of new keys (ed25519). Fewer clients can connect to a router with ed448",
    )
    p.add_argument(
        "--days",
        type=whole(1, 1_000_000),
        default=36500,
        metavar="N",
        help="validity of the online certificate in days (36500)",
    )


def load_config(program: Program, path: Path | None) -> Any:
    """Load the configuration of a router: the `config` of the program's schema."""
    try:
        return program.schema.load(path)
    except ConfigError as error:
        raise Fail(str(error)) from None


def load_smp_config(path: Path | None) -> RouterConfig:
    config: RouterConfig = load_config(SMP, path)
    return config


def read_secret(path: Path) -> str:
    """Read a file that holds one password."""
    try:
        return path.read_text("utf-8").strip()
    except OSError as error:
        raise os_error(path, error) from None


def smp_address(text: str) -> SmpAddress:
    address = SmpAddress.parse(text)
    if address is None or address.scheme != "smp":
        raise Fail("not an smp:// address: expected smp://FINGERPRINT[:PASSWORD]@host[:port]")
    return address


def ntf_address(text: str) -> SmpAddress:
    """Read an address, with or without a query."""
    address = SmpAddress.parse(text.partition("?")[0])
    if address is None or address.scheme != "ntf":
        raise Fail("not an ntf:// address: expected ntf://FINGERPRINT@host[:port]")
    return address


def descriptor(text: str) -> int:
    """A file descriptor that this process has inherited."""
    value = whole(0, 2**31 - 1)(text)
    try:
        os.fstat(value)
    except OSError:
        raise argparse.ArgumentTypeError(f"{text!r}: no open file descriptor") from None
    return value


def host(text: str) -> str:
    address = SmpAddress(bytes(32), (text,))
    if SmpAddress.parse(str(address)) != address:
        raise argparse.ArgumentTypeError(f"{text!r} is not a host name or an IP address")
    return text
