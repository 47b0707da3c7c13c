"""Plans of batches: what a batch that was killed was going to do, and the state before it."""

from pathlib import Path

import pytest

from tests.pipeline.ingest.test_sequences import clock, entry
from weir.pipeline.directory import Directory
from weir.pipeline.errors import PipelineError
from weir.pipeline.ingest.plans import PLACE, Plan, Plans
from weir.pipeline.ingest.sequences import Changes, Sequences

pytestmark = pytest.mark.spark  # pyarrow reads and writes the files


def plan(state: Sequences, query: str, batch: int, changes: Changes | None = None) -> Plan:
    return Plan(query, batch, state.to_json(), changes or Changes())


def test_the_state_before_a_batch_and_its_plan(tmp_path: Path) -> None:
    plans = Plans(Directory(str(tmp_path)))
    assert not plans
    state, own = plans.load("q", 0)
    assert (state.to_json(), own) == (Sequences().to_json(), None)
    texts = [state.to_json()]
    for batch in range(3):
        state, own = plans.load("q", batch)
        assert (state.to_json(), own) == (texts[-1], None)
        changes = state.advance([entry("a", 1 + 5 * batch), clock(5 * batch + 60)], [])
        texts.append(state.to_json())
        plans.save(plan(state, "q", batch, changes), again=False)
        state, own = plans.load("q", batch)
        assert state.to_json() == texts[-2], "the state before, also when the plan is there"
        assert own is not None
        assert (own.sequences, own.changes.added) == (texts[-1], changes.added)
    assert len(list((tmp_path / PLACE).iterdir())) == 2
    # A query that begins anew counts its batches from 0, and continues the state.
    assert plans.load("other", 0)[0].to_json() == texts[-1]


def test_a_plan_that_is_made_again_replaces_the_first(tmp_path: Path) -> None:
    plans = Plans(Directory(str(tmp_path)))
    before, first, second = Sequences(), Sequences(), Sequences()
    before.advance([entry("a", 1)], [])
    first.advance([entry("b", 1)], [])
    second.advance([entry("c", 1)], [])
    plans.save(plan(before, "q", 0), again=False)
    plans.save(plan(first, "q", 1), again=False)
    plans.save(plan(second, "q", 1), again=True)
    state, own = plans.load("q", 1)
    assert own is not None
    assert (state.to_json(), own.sequences) == (before.to_json(), second.to_json())


def test_a_damaged_plan_is_one_line(tmp_path: Path) -> None:
    plans = Plans(Directory(str(tmp_path)))
    plans.save(plan(Sequences(), "q", 0), again=False)
    (file,) = (tmp_path / PLACE).iterdir()
    file.write_text("{")
    with pytest.raises(PipelineError, match=r"000000000001\.json is damaged$"):
        plans.load("q", 0)
