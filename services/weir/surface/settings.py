"""The sections of a configuration that belong to the surface, the same for every program."""

from __future__ import annotations

from dataclasses import dataclass

from weir.config import kinds
from weir.config.kinds import setting


@dataclass(frozen=True)
class Control:
    port: int = setting(kinds.PORT, 0, "control port; 0: off (the reference server uses 5224)")
    listen: str = setting(kinds.ADDRESS, "127.0.0.1", "address that the control port listens on")


@dataclass(frozen=True)
class Http:
    port: int = setting(kinds.PORT, 8000, "port of the web page and health; 0: off, metrics too")
    listen: str = setting(kinds.ADDRESS, "0.0.0.0", "address that the web page listens on")
    page: bool = setting(kinds.BOOL, True, "serve the web page; off: health and metrics only")
    metrics: bool = setting(kinds.BOOL, True, "serve /metrics and /metrics/edge")
    metrics_port: int = setting(kinds.PORT, 8001, "port of /metrics and /metrics/edge; 0: the port of the web page")
    metrics_listen: str = setting(kinds.ADDRESS, "127.0.0.1", "address that metrics_port listens on")


@dataclass(frozen=True)
class Information:
    """Facts that the operator publishes about the server (the reference's INFORMATION section)."""

    source_code: str | None = setting(kinds.TEXT, None, "link to the source code of this server (AGPL)")
    usage_conditions: str | None = setting(kinds.TEXT, None, "link to the conditions of use")
    condition_amendments: str | None = setting(kinds.TEXT, None, "link to amendments of the conditions")
    server_country: str | None = setting(kinds.COUNTRY, None, "country of the server")
    operator: str | None = setting(kinds.TEXT, None, "person or organisation that runs the server")
    operator_country: str | None = setting(kinds.COUNTRY, None, "country of the operator")
    website: str | None = setting(kinds.TEXT, None, "web site of the operator")
    admin_simplex: str | None = setting(kinds.TEXT, None, "administrator: SimpleX address")
    admin_email: str | None = setting(kinds.TEXT, None, "administrator: e-mail")
    admin_pgp: str | None = setting(kinds.TEXT, None, "administrator: link to a PGP key")
    admin_pgp_fingerprint: str | None = setting(kinds.TEXT, None, "administrator: fingerprint of the PGP key")
    complaints_simplex: str | None = setting(kinds.TEXT, None, "complaints: SimpleX address")
    complaints_email: str | None = setting(kinds.TEXT, None, "complaints: e-mail")
    complaints_pgp: str | None = setting(kinds.TEXT, None, "complaints: link to a PGP key")
    complaints_pgp_fingerprint: str | None = setting(kinds.TEXT, None, "complaints: fingerprint of the PGP key")
    hosting: str | None = setting(kinds.TEXT, None, "hosting provider")
    hosting_country: str | None = setting(kinds.COUNTRY, None, "country of the hosting provider")
    hosting_type: str | None = setting(
        kinds.choice("virtual", "dedicated", "colocation", "owned"), None, "kind of hosting"
    )
