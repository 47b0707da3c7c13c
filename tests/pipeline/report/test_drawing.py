"""The script that draws, out of its wheel."""

import pytest

pytestmark = pytest.mark.spark  # needs the extra "pipeline"


def test_the_script_is_complete() -> None:
    from weir.pipeline.report import drawing

    script = drawing.script()
    assert "window.vegaEmbed" in script
    assert 500_000 < len(script) < 1_000_000
    assert not [line for line in script.splitlines() if line.startswith("import ")]
