"""Tables described: on a terminal, and in docs/pipeline.md."""

from pathlib import Path

from weir.pipeline.tables.columns import GOLD, SILVER, TRAFFIC
from weir.pipeline.tables.describe import markdown, text

PAGE = Path(__file__).parents[3] / "docs" / "pipeline.md"


def test_the_terminal_shows_columns_and_rows() -> None:
    shown = "\n".join(text([TRAFFIC], {"gold/traffic": 1234}.get))
    assert "gold/traffic  (1,234 rows)" in shown
    assert "    messages_sent " in shown
    assert "(not made yet)" in "\n".join(text([TRAFFIC], lambda name: None))


def test_the_page_has_the_tables_as_declared() -> None:
    """To write the section anew: .venv/bin/python -m tests.pipeline.tables.test_describe"""
    assert section() in PAGE.read_text()


def section() -> str:
    return "\n".join(markdown((*SILVER, *GOLD)))


if __name__ == "__main__":
    before, _, after = PAGE.read_text().partition("<!-- tables -->\n")
    after = after.partition("<!-- end of tables -->\n")[2]
    PAGE.write_text(f"{before}<!-- tables -->\n{section()}\n<!-- end of tables -->\n{after}")
