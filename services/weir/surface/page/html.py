"""The server page as one HTML document. weir.js fills in the numbers and keeps them current.

A program brings its words and numbers as a `Page`; layout, information about the operator and assets are shared.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from html import escape
from importlib import resources
from string import Template
from typing import NamedTuple

import segno

from weir.surface.settings import Information

_LINKED = ("https://", "http://", "simplex:", "mailto:")


class Tile(NamedTuple):
    """A number of the page. `key` names the number in /status.json."""

    key: str
    label: str
    note: str


class Table(NamedTuple):
    """Rows of the page. `key` names a list in /status.json; a row has the columns' fields."""

    key: str
    title: str
    columns: tuple[tuple[str, str], ...]
    """(field, label)"""


@dataclass(frozen=True)
class Page:
    kind: str
    """What the server is, e.g. "SimpleX message router"."""
    host: str | None
    """Shown as the title if the operator has published no name."""
    address: str
    usage: str
    """How a person uses the address."""
    tiles: tuple[Tile, ...]
    facts: tuple[tuple[str, str], ...]
    """(term, text): what the server offers."""
    information: Information
    tables: tuple[Table, ...] = ()
    """A table is hidden while it has no rows."""


def render_page(page: Page, version: str) -> str:
    template = Template(resources.files(__package__).joinpath("index.html").read_text("utf-8"))
    info = page.information
    return template.substitute(
        title=escape(info.operator or page.host or page.kind),
        kind=escape(page.kind),
        usage=escape(page.usage),
        address=escape(page.address),
        qr=_qr(page.address),
        tiles="\n".join(
            f'<div class="tile"><dt>{label}</dt><dd id="{key}" data-key="{key}">–</dd><p>{note}</p></div>'
            for key, label, note in page.tiles
        ),
        tables="\n".join(map(_table, page.tables)),
        facts=_rows((term, escape(text)) for term, text in page.facts),
        information=_rows(_information(info)) or "<p>The operator has published nothing about this server.</p>",
        source=_link(info.source_code) if info.source_code else "not published by the operator",
        version=escape(version),
    )


def _table(table: Table) -> str:
    fields = " ".join(field for field, _ in table.columns)
    labels = "".join(f"<th>{escape(label)}</th>" for _, label in table.columns)
    return (
        f'<section class="card" id="{table.key}" data-rows="{table.key}" data-fields="{fields}" hidden>'
        f"<h2>{escape(table.title)}</h2><table><thead><tr>{labels}</tr></thead><tbody></tbody></table></section>"
    )


def _qr(address: str) -> str:
    image = io.BytesIO()
    segno.make(address, error="m", micro=False).save(
        image, kind="svg", scale=4, border=2, xmldecl=False, svgns=True, dark="#000", light="#fff", omitsize=True
    )
    return image.getvalue().decode()


def _information(info: Information) -> Iterator[tuple[str, str]]:
    """(term, HTML) of everything that the operator has published."""
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
    """A link if browsers may follow this kind of target, or else the text itself."""
    shown = escape(text or target)
    if not target.startswith(_LINKED):
        return shown
    return f'<a href="{escape(target, quote=True)}" rel="noopener noreferrer">{shown}</a>'


def _rows(rows: Iterable[tuple[str, str]]) -> str:
    return "\n".join(f"<div><dt>{escape(term)}</dt><dd>{html}</dd></div>" for term, html in rows)
