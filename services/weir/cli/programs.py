"""The two routers, as far as their commands differ. `weir smp …` and `weir ntf …` are the same modules."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from weir.config.schema import Schema


@dataclass(frozen=True)
class Program:
    name: str
    """As in `weir NAME …`, and the scheme of addresses."""
    title: str
    port: int
    """Default port of clients."""
    reference: str
    """The reference server, whose ini file is read."""
    reference_control_port: int
    edge_module: str
    config_module: str

    @property
    def command(self) -> str:
        return f"weir {self.name}"

    @property
    def protocol(self) -> str:
        return self.name.upper()

    @property
    def schema(self) -> Schema[Any]:
        schema: Schema[Any] = importlib.import_module(self.config_module).SCHEMA
        return schema

    @property
    def secrets(self) -> frozenset[str]:
        """Names of settings that are shown as (set)."""
        secrets: frozenset[str] = importlib.import_module(self.config_module).SECRETS
        return secrets


SMP = Program("smp", "SMP router", 5223, "smp-server", 5224, "weir.router.edge", "weir.router.config")
NTF = Program("ntf", "notification router", 443, "ntf-server", 5227, "weir.notifier.edge", "weir.notifier.config")
PROGRAMS = {program.name: program for program in (SMP, NTF)}
