"""The server page as one HTML document; its numbers are filled in and kept current by weir.js."""

from __future__ import annotations

import io
from collections.abc import Iterator
from html import escape
from importlib import resources
from string import Template

import segno

from weir.router.config import Information, RouterConfig
from weir.router.config_kinds import show_duration

_LINKED = ("https://", "http://", "simplex:", "mailto:")

TILES = (
    ("connections", "connections", "clients connected to any edge"),
    ("queues", "queues", "stored"),
    ("messages", "messages", "waiting for their recipients"),
    ("rate", "messages / s", "sent, last seconds"),
    ("services", "services", "with a certificate"),
    ("edges", "edges", "serving this address"),
)


def render_page(config: RouterConfig, address: str, version: str) -> str:
    template = Template(resources.files(__package__).joinpath("index.html").read_text("utf-8"))
    info = config.information
    return template.substitute(
        title=escape(info.operator or (config.transport.hosts[0] if config.transport.hosts else "SMP router")),
        address=escape(address),
        qr=_qr(address),
        tiles="\n".join(
            f'<div class="tile"><dt>{label}</dt><dd id="{key}" data-key="{key}">–</dd><p>{note}</p></div>'
            for key, label, note in TILES
        ),
        facts=_rows(_facts(config)),
        information=_rows(_information(info)) or "<p>The operator has published nothing about this server.</p>",
        source=_link(info.source_code) if info.source_code else "not published by the operator",
        version=escape(version),
    )


def _qr(address: str) -> str:
    image = io.BytesIO()
    segno.make(address, error="m", micro=False).save(
        image, kind="svg", scale=4, border=2, xmldecl=False, svgns=True, dark="#000", light="#fff", omitsize=True
    )
    return image.getvalue().decode()


def _facts(config: RouterConfig) -> Iterator[tuple[str, str]]:
    auth = config.auth
    if not auth.new_queues:
        yield "New queues", "not allowed"
    else:
        yield "New queues", "with a password" if auth.create_password else "open to everybody"
    yield "Messages are kept", f"up to {_days(config.queues.message_ttl)}, {config.queues.quota} a queue"
    yield "Private routing", "forwards messages to other routers" if config.proxy.enable else "off"


def _days(seconds: float) -> str:
    days = seconds / 86400
    return f"{days:g} days" if days > 1 else show_duration(seconds)


def _information(info: Information) -> Iterator[tuple[str, str]]:
    """(term, HTML) of everything the operator has published."""
    if info.server_country:
        yield "Server location", escape(info.server_country)
    if info.operator:
        yield "Operator", _entity(info.operator, info.operator_country)
    if info.website:
        yield "Web site", _link(info.website)
    if info.usage_conditions:
        conditions = _link(info.usage_conditions)
        if info.condition_amendments:
            conditions += f" · amendments: {_link(info.condition_amendments)}"
        yield "Conditions of use", conditions
    for title, prefix in (("Administrator", "admin"), ("Complaints and feedback", "complaints")):
        contact = " · ".join(_contact(info, prefix))
        if contact:
            yield title, contact
    if info.hosting:
        yield "Hosting", _entity(info.hosting, info.hosting_country)
    if info.hosting_type:
        yield "Kind of hosting", escape(info.hosting_type)


def _contact(info: Information, prefix: str) -> Iterator[str]:
    simplex, email, pgp, fingerprint = (
        getattr(info, f"{prefix}_{field}") for field in ("simplex", "email", "pgp", "pgp_fingerprint")
    )
    if simplex:
        yield _link(simplex, "SimpleX")
    if email:
        yield _link(f"mailto:{email}", email)
    if pgp and fingerprint:
        yield f"{_link(pgp, 'PGP')} <code>{escape(fingerprint)}</code>"


def _entity(name: str, country: str | None) -> str:
    return escape(f"{name} ({country})" if country else name)


def _link(target: str, text: str = "") -> str:
    """A link when the target is of a kind browsers may follow, else the text itself."""
    shown = escape(text or target)
    if not target.startswith(_LINKED):
        return shown
    return f'<a href="{escape(target, quote=True)}" rel="noopener noreferrer">{shown}</a>'


def _rows(rows: Iterator[tuple[str, str]]) -> str:
    return "\n".join(f"<div><dt>{escape(term)}</dt><dd>{html}</dd></div>" for term, html in rows)
