"""The scripts as files: headers, includes, what they may do."""

import re
from pathlib import Path

import pytest

from weir.store import scripts
from weir.store.scripts import Scripts, expand

FOLDER = Path(scripts.__file__).parent / "lua"


@pytest.mark.parametrize("name", scripts.names())
def test_a_header_says_what_it_does(name: str) -> None:
    header = []
    for line in (FOLDER / f"{name}.lua").read_text().splitlines():
        if not line.startswith("--"):
            break
        header.append(line)
    text = "\n".join(header)
    assert re.search(r"^-- [A-Z]", text)
    for part in ("-- KEYS ", "-- ARGV ", "-- Answers "):
        assert part in text, f"{name} lacks {part}"


@pytest.mark.parametrize("name", scripts.names())
def test_includes_are_expanded_once(name: str) -> None:
    text = expand(name)
    assert "-- include:" not in text
    assert text.count("local tag =") <= 1
    assert text.count("local function head(") <= 1


def test_every_include_is_used() -> None:
    used = set(re.findall(r"-- include: (\w+)", "".join(p.read_text() for p in FOLDER.rglob("*.lua"))))
    assert used | {"poke_shard", "settled"} == {p.stem for p in (FOLDER / "include").glob("*.lua")}


def test_pokes_stay_in_their_slot_on_a_cluster() -> None:
    assert "redis.call('SPUBLISH'" in expand("send", sharded=True)
    assert "redis.call('SPUBLISH'" not in expand("send")
    assert Scripts().shas["send"] != Scripts(sharded=True).shas["send"]


def test_nothing_reads_a_body() -> None:
    """Bodies never enter Lua: no script GETs what may be a body."""
    for name in scripts.names():
        keys_read = re.findall(r"'GET', ([^,)]+)", expand(name))
        assert not [key for key in keys_read if ":b:" in key or "body" in key], name
