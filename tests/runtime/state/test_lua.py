"""The scripts and includes that all routers share."""

from pathlib import Path

from tests.support.lua import check_header
from weir.redis.scripts import expand, names
from weir.runtime.state.calls import LUA


def test_headers() -> None:
    for name in names([LUA]):
        check_header([LUA], name)


def test_they_need_nothing_of_a_program() -> None:
    for name in names([LUA]):
        expand([LUA], name, cluster=True)


def test_a_program_may_have_an_include_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "include").mkdir()
    (tmp_path / "include" / "works_when_full.lua").write_text("-- mine\n")
    (tmp_path / "mine.lua").write_text("-- include: works_when_full\n-- include: tag\nreturn 1\n")
    text = expand([tmp_path, LUA], "mine")
    assert text.startswith("-- mine\n")
    assert "local tag" in text
    assert {"mine", "add_stats"} <= set(names([tmp_path, LUA]))
