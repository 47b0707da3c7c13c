"""From gold to a report: chapters, sections, tiles, and what is refused."""

import pytest

from tests.pipeline.report.given import Given, Rows, joined
from weir.pipeline.report.build import Nothing, report
from weir.pipeline.report.figure import figures


@pytest.fixture(scope="module")
def rows() -> Rows:
    incident = [range(25 * 24 + 13, 25 * 24 + 16)]
    return joined(Given(28, incidents=incident).rows(), Given(28, program="ntf").rows())


def test_two_routers_of_one_name(rows: Rows) -> None:
    made = report(rows, 14)
    assert (made.title, made.subtitle) == ("main", "Mon 21 Sep to Sun 4 Oct 2026, 14 days, times are UTC")
    smp, ntf = made.chapters
    assert (smp.title, ntf.title) == ("SMP router", "Notification router")
    assert [section.title for section in smp.sections] == [
        *("Traffic", "Errors", "Latency", "Queues in use", "Services", "Notifications", "Growth", "Data"),
    ]
    assert [section.title for section in ntf.sections] == [
        *("Traffic", "Errors", "Latency", "Tokens in use", "Notifications", "Growth", "Data"),
    ]
    assert len(smp.notes) == 1 and smp.quiet == ""
    assert ntf.notes == () and ntf.quiet.startswith("Nothing: ")
    assert made.overview is None


def test_names_are_unique_in_the_page(rows: Rows) -> None:
    made = report(rows, 14)
    names = [section.name for chapter in made.chapters for section in chapter.sections]
    names += [figure.name for chapter in made.chapters for figure in figures(chapter.sections)]
    names += [figure.name for c in made.chapters for s in c.sections for figure in s.figures if figure.choices]
    assert len(set(names)) == len(names)


def test_tiles(rows: Rows) -> None:
    smp, _ = report(rows, 14).chapters
    labels = ["messages a day", "SEND to MSG", "refused commands", "Redis full", "data"]
    assert [tile.label for tile in smp.tiles] == labels
    full = smp.tiles[3]
    assert full.value.endswith(" 2027") and full.note == "at the earliest"
    assert smp.tiles[4].value == "complete"


def test_a_redis_that_is_soon_full_is_a_bad_tile() -> None:
    rows = Given(28).rows()
    for row in rows["gold/capacity"]:
        row["redis_max_bytes"] = 4 * 2**30
    [chapter] = report(rows, 14).chapters
    assert chapter.tiles[3].tone == "bad"
    for row in rows["gold/capacity"]:
        row["redis_max_bytes"] = 900 * 2**30
    [chapter] = report(rows, 14).chapters
    assert (chapter.tiles[3].label, chapter.tiles[3].tone) == ("Redis used", "good")
    for row in rows["gold/capacity"]:
        row["redis_max_bytes"] = None
    [chapter] = report(rows, 14).chapters
    assert (chapter.tiles[3].label, chapter.tiles[3].note) == ("Redis", "no limit is set")


def test_several_routers_have_an_overview() -> None:
    made = report(joined(*(Given(9, router=name).rows() for name in ("b", "a", "c"))), 7)
    assert made.title == "a, b and c"
    assert made.overview is not None
    assert [row[0] for row in made.overview.rows] == ["a", "b", "c"]
    assert [chapter.title for chapter in made.chapters] == ["a", "b", "c"]
    assert [chapter.kind for chapter in made.chapters] == ["SMP router"] * 3


def test_many_routers_are_in_the_overview_alone() -> None:
    rows = joined(*(Given(1, router=f"r{n}").rows() for n in range(9)))
    made = report(rows, 7)
    assert made.title == "9 routers"
    assert made.chapters == () and made.overview is not None and len(made.overview.rows) == 9
    assert "--router" in made.footnotes[0]
    assert len(report(rows, 7, ["r1", "r5"]).chapters) == 2


def test_what_is_refused(rows: Rows) -> None:
    with pytest.raises(Nothing, match="no traffic yet"):
        report({}, 14)
    with pytest.raises(Nothing, match=r"no traffic of router 'nobody'; there is main"):
        report(rows, 14, ["main", "nobody"])


@pytest.mark.parametrize("days", [1, 2, 8, 31, 32, 400])
def test_every_span_makes_a_report(rows: Rows, days: int) -> None:
    for chapter in report(rows, days).chapters:
        assert len(chapter.sections) >= 5


def test_an_hour_of_history_is_a_report() -> None:
    rows = Given(1).rows()
    first = min(row["at"] for row in rows["gold/traffic"])
    few = {
        name: [row for row in found if row.get("grain") == "hour" and row["at"] == first]
        for name, found in rows.items()
    }
    made = report(few, 14)
    assert made.subtitle.endswith("1 hour, times are UTC")
    assert made.chapters[0].sections[0].title == "Traffic"
