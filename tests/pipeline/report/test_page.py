"""The page is one document: everything is inside, everything is escaped, and each plot has its words and its table."""

import json
import re
from base64 import b64encode
from dataclasses import replace
from hashlib import sha256
from html.parser import HTMLParser

import pytest

from tests.pipeline.report.given import Given, Rows, joined
from weir.pipeline.report.build import report
from weir.pipeline.report.figure import Report
from weir.pipeline.report.page import render

LIBRARY = "window.vegaEmbed = () => { const end = '</script>'; };"


class Elements(HTMLParser):
    """The elements with their attributes, and the text of scripts."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str]]] = []
        self.scripts: list[tuple[dict[str, str], str]] = []
        self.text = ""
        self._script = False
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = {name: value or "" for name, value in attrs}
        self.found.append((tag, attributes))
        self._script = tag == "script"
        if self._script:
            self.scripts.append((attributes, ""))

    def handle_endtag(self, tag: str) -> None:
        self._script = False

    def handle_data(self, data: str) -> None:
        if self._script:
            self.scripts[-1] = (self.scripts[-1][0], self.scripts[-1][1] + data)
        else:
            self.text += data

    def of_class(self, name: str) -> list[dict[str, str]]:
        return [attributes for _, attributes in self.found if name in attributes.get("class", "").split()]


@pytest.fixture(scope="module")
def rows() -> Rows:
    return joined(Given(16, gaps=[range(50, 55)]).rows(), Given(16, program="ntf").rows())


@pytest.fixture(scope="module")
def made(rows: Rows) -> Report:
    return report(rows, 14)


@pytest.fixture(scope="module")
def page(made: Report) -> Elements:
    return Elements(render(made, LIBRARY, "0.1.0"))


def test_nothing_is_fetched(page: Elements) -> None:
    for tag, attributes in page.found:
        assert attributes.get("src") is None, tag
        assert attributes.get("href", "#").startswith(("#", "data:,")), tag
        assert tag != "link" or attributes["rel"] == "icon"


def test_the_policy_allows_the_two_scripts_and_nothing_else(page: Elements) -> None:
    [policy] = [a["content"] for _, a in page.found if a.get("http-equiv") == "Content-Security-Policy"]
    executed = [text for attributes, text in page.scripts if "type" not in attributes]
    assert len(executed) == 2
    hashes = " ".join(f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'" for text in executed)
    assert policy == f"default-src 'none'; script-src {hashes}; style-src 'unsafe-inline'; img-src data:"


def test_each_plot_has_its_data_its_words_and_its_table(page: Elements) -> None:
    specs = {attributes["id"]: json.loads(text) for attributes, text in page.scripts if "type" in attributes}
    ids = {attributes["id"] for _, attributes in page.found if "id" in attributes}
    plots = page.of_class("plot")
    assert len(plots) >= 15
    assert {plot["data-spec"] for plot in plots} == set(specs)
    assert all(spec["config"]["background"] is None for spec in specs.values())
    for plot in plots:
        assert plot["aria-labelledby"] in ids and plot["aria-describedby"] in ids
        assert plot["role"] == "img" or (plot["role"], plot["tabindex"]) == ("slider", "0")
    assert len(page.of_class("scroll")) >= len(plots)


def test_ids_are_unique_and_links_have_targets(page: Elements) -> None:
    ids = [attributes["id"] for _, attributes in page.found if "id" in attributes]
    assert len(set(ids)) == len(ids)
    assert {a["href"][1:] for tag, a in page.found if tag == "a"} <= set(ids)


def test_a_plot_over_time_has_a_row_for_each_position(page: Elements) -> None:
    tables = [attributes for tag, attributes in page.found if tag == "table" and "data-step" in attributes]
    sliders = [plot for plot in page.of_class("plot") if plot["role"] == "slider"]
    assert len(tables) == len(sliders)
    assert {int(table["data-step"]) for table in tables} <= {3_600_000 * step for step in (1, 3, 24)}


def test_names_are_escaped(rows: Rows) -> None:
    hostile = "</script><script>alert(1)</script><b>&amp;"
    changed: Rows = {name: [dict(row) for row in found] for name, found in rows.items()}
    for found in changed.values():
        for row in found:
            row["router"] = hostile
    for row in changed["gold/services"]:
        row["label"] = hostile
    text = render(report(changed, 14), LIBRARY, "0.1.0")
    page = Elements(text)
    assert len([1 for attributes, _ in page.scripts if "type" not in attributes]) == 2
    assert "alert(1)</script>" not in text
    assert page.text.count(hostile) >= 3
    assert not [tag for tag, _ in page.found if tag == "b"]


def test_a_report_without_chapters(made: Report) -> None:
    page = Elements(render(replace(made, chapters=()), LIBRARY, "0.1.0"))
    assert page.of_class("plot") == []


def test_tables_show_what_the_plots_show(page: Elements) -> None:
    assert re.search(r"no data", page.text)
    assert "Made by Weir 0.1.0" in page.text
