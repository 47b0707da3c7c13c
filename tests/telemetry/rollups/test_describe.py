"""The page about the pipeline has every name of a rollup, as declared."""

from pathlib import Path

from weir.telemetry.rollups.describe import markdown
from weir.telemetry.rollups.fields import COMMANDS, EVENTS, GAUGES, HISTOGRAMS, PROGRAMS

PAGE = Path(__file__).parents[3] / "docs" / "pipeline.md"
BEGIN, END = "<!-- rollups -->\n", "<!-- end of rollups -->\n"


def test_the_page_has_the_names_as_declared() -> None:
    """To write the section anew: .venv/bin/python -m tests.telemetry.rollups.test_describe"""
    assert f"{BEGIN}{section()}{END}" in PAGE.read_text()


def test_every_name_has_one_row() -> None:
    rows = [line.split("|")[1].strip() for line in markdown() if line.startswith("| `")]
    for program in PROGRAMS:
        for table in (COMMANDS, EVENTS, GAUGES, HISTOGRAMS):
            for name in table[program]:
                assert rows.count(f"`{name}`") == 1, name


def section() -> str:
    return "".join(f"{line}\n" for line in markdown())


if __name__ == "__main__":
    before, _, after = PAGE.read_text().partition(BEGIN)
    PAGE.write_text(f"{before}{BEGIN}{section()}{END}{after.partition(END)[2]}")
