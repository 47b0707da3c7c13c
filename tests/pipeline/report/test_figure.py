"""All figures of sections, with those that can be chosen."""

from weir.pipeline.report.figure import Figure, Section, Table, figures


def test_choices_stand_for_their_figure() -> None:
    plain, one, two = (Figure(name, "", "", Table((), ())) for name in ("plain", "one", "two"))
    chosen = Figure("chosen", "", "", Table((), ()), choices=(("1", one), ("2", two)))
    sections = [Section("a", "A", (plain, chosen)), Section("b", "B", (plain,))]
    assert [figure.name for figure in figures(sections)] == ["plain", "one", "two", "plain"]
