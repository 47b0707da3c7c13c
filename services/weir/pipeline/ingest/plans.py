"""A batch's plan, kept beside the tables: a batch that is killed is finished as planned.

A plan holds the state of the sequences after its batch, and what the batch changes. It is written before the batch's
records are. When a batch is run again and its records are in the table already, its plan still holds, although Redis
may have removed its entries since. Otherwise the batch is planned again, from what Redis has now.

The file of a plan has a number, one higher than that of the plan before. The two latest are kept.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Final

from weir.pipeline.directory import Directory
from weir.pipeline.errors import PipelineError
from weir.pipeline.ingest.sequences import Changes, Gap, Sequences

PLACE: Final = "ingest/plans"
_KEPT: Final = 2


@dataclass(frozen=True)
class Plan:
    query: str
    """Spark's id of the query. The numbers of batches count within a query."""
    batch: int
    sequences: str
    """The state afterwards, as text."""
    changes: Changes


class Plans:
    def __init__(self, directory: Directory) -> None:
        self._directory = directory

    def __bool__(self) -> bool:
        return bool(self._names())

    def load(self, query: str, batch: int) -> tuple[Sequences, Plan | None]:
        """The state before this batch, and the batch's plan if there is one."""
        found = [self._read(name) for name in self._names()[-_KEPT:]]
        own = found.pop() if found and (found[-1].query, found[-1].batch) == (query, batch) else None
        return (Sequences.from_json(found[-1].sequences) if found else Sequences()), own

    def save(self, plan: Plan, *, again: bool) -> None:
        """Write a plan; `again` in place of the latest one."""
        names = self._names()
        number = int(names[-1].partition(".")[0]) if names else 0
        name = f"{number if again else number + 1:012}.json"
        content = {
            "query": plan.query,
            "batch": plan.batch,
            "added": plan.changes.added,
            "removed": plan.changes.removed,
            "sequences": plan.sequences,
        }
        self._directory.write(f"{PLACE}/{name}", json.dumps(content).encode())
        for old in sorted({*names, name})[:-_KEPT]:
            self._directory.delete(f"{PLACE}/{old}")

    def _names(self) -> list[str]:
        return self._directory.names(PLACE)

    def _read(self, name: str) -> Plan:
        path = f"{PLACE}/{name}"
        try:
            content = json.loads(self._directory.read(path) or b"")
            changes = Changes(
                [], [Gap(*each) for each in content["added"]], [Gap(*each) for each in content["removed"]]
            )
            return Plan(content["query"], content["batch"], content["sequences"], changes)
        except (ValueError, KeyError, TypeError):
            raise PipelineError(f"{self._directory.location(path)} is damaged") from None
