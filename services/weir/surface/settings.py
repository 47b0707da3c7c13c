"""The sections of a configuration that belong to the surface, the same for every program."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields

from weir.config import kinds
from weir.config.file import Problem
from weir.config.kinds import setting
from weir.config.schema import Places


@dataclass(frozen=True)
class Control:
    port: int = setting(kinds.PORT, 0, "control port; 0: off (the reference server uses 5224)")
    listen: str = setting(kinds.ADDRESS, "127.0.0.1", "address that the control port listens on")


@dataclass(frozen=True)
class ControlPasswords:
    """Part of the section [auth]."""

    control_port_admin_password: str | None = setting(kinds.PASSWORD, None, "control port: the admin's password")
    control_port_user_password: str | None = setting(kinds.PASSWORD, None, "control port: the user's password")


def check_passwords(passwords: ControlPasswords, places: Places) -> list[Problem]:
    admin, user = passwords.control_port_admin_password, passwords.control_port_user_password
    if admin is None or admin != user:
        return []
    return [places.problem("auth", "control_port_user_password", "control_port_user_password: same as the admin's")]


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


def check_information(information: Information, places: Places) -> list[Problem]:
    # The reference server writes hosting_type into every ini, so it does not count as information.
    given = [f.name for f in fields(information) if getattr(information, f.name) and f.name != "hosting_type"]
    if information.source_code is not None or not given:
        return []
    return [places.problem("information", given[0], "source_code: needed when any other information is given")]


def check_ports(http: Http, ports: Iterable[int], places: Places) -> list[Problem]:
    """Two servers on one port. Edges share their ports with SO_REUSEPORT, so that the system would not refuse it."""
    taken = dict.fromkeys(ports, "in [transport] ports")
    used = [("port", http.port)] if http.port else []
    if used and http.metrics and http.metrics_port:
        used.append(("metrics_port", http.metrics_port))
    problems = []
    for key, port in used:
        if port in taken:
            problems.append(places.problem("http", key, f"{key}: {port} is {taken[port]} already"))
        if http.listen == http.metrics_listen:
            taken[port] = "the port of the web page"
    return problems
