"""A report as one HTML document that needs nothing else: style, script, plots and tables are inside."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from hashlib import sha256
from html import escape
from importlib import resources
from string import Template
from typing import Final

from weir.pipeline.report.charts import CONFIG, DASHES, HEAT
from weir.pipeline.report.figure import Chapter, Figure, Key, Note, Report, Section, Table, Tile, figures
from weir.pipeline.report.units import share

_LEGEND: Final = 26
_WORDS: Final = 24
"""A column with a longer text than this is words, and is set to the left."""


def render(report: Report, library: str, version: str) -> str:
    """`library` is the script that draws (`drawing.script`)."""
    scripts = [_inert(library), _asset("report.js")]
    return Template(_asset("page.html")).substitute(
        hashes=" ".join(map(_hash, scripts)),
        title=escape(report.title),
        subtitle=escape(report.subtitle),
        style=_asset("report.css").strip(),
        nav=_nav(report),
        overview=_overview(report),
        chapters="\n".join(_chapter(chapter) for chapter in report.chapters),
        footnotes="\n".join(f"<p>{escape(note)}</p>" for note in report.footnotes),
        specs="\n".join(_spec(figure) for chapter in report.chapters for figure in figures(chapter.sections)),
        scripts="\n".join(f"<script>{script}</script>" for script in scripts),
        version=escape(version),
    )


def _hash(script: str) -> str:
    """The page's policy allows this: these scripts, and nothing that comes from elsewhere."""
    return f"'sha256-{b64encode(sha256(script.encode()).digest()).decode()}'"


def _asset(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text("utf-8")


def _spec(figure: Figure) -> str:
    """The plot as JSON, without a character that HTML could take for its own."""
    if figure.spec is None:
        return ""
    spec = json.dumps({**figure.spec, "config": CONFIG}, separators=(",", ":"), ensure_ascii=False)
    inert = spec.replace("<", "\\u003c")
    return f'<script type="application/json" id="spec-{figure.name}">{inert}</script>'


def _inert(script: str) -> str:
    """A script's text cannot end its element: in strings and regular expressions, "<\\/" is "</"."""
    return re.sub("</(?=script)", r"<\\/", script, flags=re.IGNORECASE).replace("<!--", "<\\!--")


def _nav(report: Report) -> str:
    rows = []
    for chapter in report.chapters:
        links = [f'<li><a href="#{section.name}">{escape(section.title)}</a></li>' for section in chapter.sections]
        if len(report.chapters) > 1:
            links.insert(0, f'<li><a class="router" href="#{chapter.name}">{escape(chapter.title)}</a></li>')
        rows.append(f"<ul>{''.join(links)}</ul>")
    return f'<nav aria-label="Sections">{"".join(rows)}</nav>' if rows else ""


def _overview(report: Report) -> str:
    if report.overview is None:
        return ""
    return f'<section class="card"><h2>All routers</h2>{_open_table(report.overview, "All routers")}</section>'


def _chapter(chapter: Chapter) -> str:
    tiles = "".join(_tile(tile) for tile in chapter.tiles)
    sections = "\n".join(_section(section) for section in chapter.sections)
    return (
        f'<section class="chapter" id="{chapter.name}" aria-labelledby="{chapter.name}-title">'
        f'<h2 id="{chapter.name}-title">{escape(chapter.title)} <span class="kind">{escape(chapter.kind)}</span></h2>'
        f'<dl class="tiles">{tiles}</dl>{_notes(chapter)}\n{sections}\n</section>'
    )


def _tile(tile: Tile) -> str:
    return (
        f'<div class="tile {tile.tone}"><dt>{escape(tile.label)}</dt><dd class="value">{escape(tile.value)}</dd>'
        f'<dd class="note">{escape(tile.note)}</dd></div>'
    )


def _notes(chapter: Chapter) -> str:
    if not chapter.notes and not chapter.quiet:
        return ""
    items = "".join(_note(note) for note in chapter.notes)
    body = f"<ol>{items}</ol>" if items else f'<p class="calm">{escape(chapter.quiet)}</p>'
    return f'<section class="card notes"><h3>What is unusual this week</h3>{body}</section>'


def _note(note: Note) -> str:
    return f'<li><span class="when">{escape(note.when)}</span><span>{escape(note.text)}</span></li>'


def _section(section: Section) -> str:
    figures = "\n".join(_figure(figure) for figure in section.figures)
    return (
        f'<section id="{section.name}"><h3>{escape(section.title)}</h3>\n'
        f'<div class="figures">\n{figures}\n</div></section>'
    )


def _figure(figure: Figure) -> str:
    if figure.choices:
        return _choices(figure)
    width = " wide" if figure.wide else ""
    return (
        f'<figure class="card{width}" id="{figure.name}" aria-labelledby="{figure.name}-title">{_body(figure)}</figure>'
    )


def _choices(figure: Figure) -> str:
    """Several figures in one place. Without the script all of them are shown, without the buttons."""
    buttons = "".join(
        f'<label><input type="radio" name="{figure.name}" value="{chosen.name}"{"" if place else " checked"}>'
        f"{escape(label)}</label>"
        for place, (label, chosen) in enumerate(figure.choices)
    )
    figures = "\n".join(
        f'<figure class="choice" style="margin:0" id="{chosen.name}" aria-labelledby="{chosen.name}-title">'
        f"{_body(chosen)}</figure>"
        for _, chosen in figure.choices
    )
    return (
        f'<div class="card wide"><fieldset class="choices" hidden><legend class="hidden">What to show</legend>{buttons}'
        f"</fieldset>{figures}</div>"
    )


def _body(figure: Figure) -> str:
    title = f'<h4 id="{figure.name}-title">{escape(figure.finding)}</h4>'
    summary = f'<p class="summary" id="{figure.name}-summary">{escape(figure.summary)}</p>'
    if figure.spec is None:
        return f"{title}{summary}{_open_table(figure.table, figure.finding)}"
    return f"{title}{_legend(figure)}{_plot(figure)}{summary}{_table(figure.table, figure.finding)}"


def _plot(figure: Figure) -> str:
    """A plot over time is a slider to keyboards and screen readers: each position is a row of the table."""
    height = figure.spec["height"] if figure.spec else 0
    least = f' style="min-height:{int(height) + 22}px"' if isinstance(height, int) else ""
    common = f'class="plot" data-spec="spec-{figure.name}"{least} aria-labelledby="{figure.name}-title"'
    if not figure.table.step:
        return f'<div {common} role="img" aria-describedby="{figure.name}-summary"></div>'
    last = len(figure.table.rows) - 1
    return (
        f'<div {common} role="slider" tabindex="0" aria-describedby="{figure.name}-summary" '
        f'aria-orientation="horizontal" aria-valuemin="0" aria-valuemax="{last}" aria-valuenow="{last}" '
        'aria-valuetext="use the arrow keys"></div>'
    )


def _legend(figure: Figure) -> str:
    parts = [f"<span>{escape(figure.unit)}</span>"] if figure.unit else []
    parts += [f"<span>{_mark(key)}{escape(key.label)}</span>" for key in figure.keys]
    if figure.spec and "heat" in str(figure.spec):
        parts.append(_shades())
    return f'<p class="legend">{"".join(parts)}</p>' if parts else '<p class="legend"></p>'


def _mark(key: Key) -> str:
    if key.mark in ("area", "band"):
        faint = ' opacity="0.3"' if key.mark == "band" else ""
        shape = f'<rect width="{_LEGEND}" height="10" y="1" rx="2" fill="var(--{key.colour})"{faint}/>'
    else:
        dashes = " ".join(map(str, DASHES[key.mark])) if key.mark != "line" else "none"
        shape = (
            f'<path d="M0 6H{_LEGEND}" stroke="var(--{key.colour})" stroke-width="2.5" stroke-dasharray="{dashes}"/>'
        )
    return f'<svg width="{_LEGEND}" height="12" aria-hidden="true">{shape}</svg>'


def _shades() -> str:
    steps = "".join(f'<i style="background:var(--heat{step})"></i>' for step in range(len(HEAT) + 1))
    return f'<span class="shades">under {share(HEAT[0])} {steps} over {share(HEAT[-1])}</span>'


def _table(table: Table, name: str) -> str:
    if not table.rows:
        return ""
    label = f'<summary>Table<span class="hidden">: {escape(name)}</span></summary>'
    return f"<details>{label}{_scrolling(table, name, 'scroll')}</details>"


def _open_table(table: Table, name: str) -> str:
    return _scrolling(table, name, "scroll open") if table.rows else ""


def _scrolling(table: Table, name: str, kind: str) -> str:
    """A wide table scrolls inside its box. The box can have the focus, so that the keyboard can scroll it."""
    return f'<div class="{kind}" tabindex="0" role="region" aria-label="Table: {escape(name)}">{_rows(table)}</div>'


def _rows(table: Table) -> str:
    words = {
        place
        for row in table.rows
        for place, cell in enumerate(row)
        if place and len(cell) > _WORDS and not cell[0].isdigit()
    }

    def cell(name: str, place: int, text: str) -> str:
        kind = ' class="words"' if place in words else ""
        return f"<{name}{kind}>{escape(text)}</{name}>"

    def row(texts: tuple[str, ...]) -> str:
        return "".join(cell("td" if place else "th", place, text) for place, text in enumerate(texts))

    head = "".join(cell("th", place, text) for place, text in enumerate(table.columns))
    body = "".join(f"<tr>{row(texts)}</tr>" for texts in table.rows)
    times = f' data-start="{table.start}" data-step="{table.step}"' if table.step else ""
    return f"<table{times}><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
