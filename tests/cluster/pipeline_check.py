"""Compares the tables with Redis, in a pod of the pipeline's image: `python3 - TABLES REDIS_DIR… < pipeline_check.py`.

Prints JSON: how many records Redis has that the tables should have, those that are missing or there twice, and whether
the commands counted in gold are those of the records. Only what Redis had before the newest ingest is compared.
"""

import collections
import json
import os
import sys
from pathlib import Path

from deltalake import DeltaTable

from weir.pipeline.ingest.ids import Id, Range
from weir.pipeline.ingest.registry import Registry, open_stream
from weir.telemetry.rollups.record import decode


def stored(directory: str) -> dict[tuple[str, int], dict[str, int]]:
    path = Path(directory)
    registry = Registry(
        (path / "url").read_text().strip(),
        (path / "prefix").read_text().strip(),
        password_file=str(path / "password"),
    )
    found = {}
    with open_stream(registry) as stream:
        extent = stream.extent()
        if extent is not None:
            for page in stream.pages(Range(Id(0, 0), extent.last)):
                for _, fields in page:
                    rollup = decode(fields[b"r"])
                    found[rollup.edge, rollup.sequence] = dict(rollup.commands)
    return found


def main() -> None:
    tables, *directories = sys.argv[1:]
    records: dict[tuple[str, int], dict[str, int]] = {}
    for directory in directories:
        records |= stored(directory)
    rows = DeltaTable(f"{tables}/bronze/rollups").to_pyarrow_table(columns=["edge", "sequence"]).to_pylist()
    counts = collections.Counter((row["edge"], row["sequence"]) for row in rows)
    gold = DeltaTable(f"{tables}/gold/commands").to_pyarrow_table(columns=["grain", "command", "outcome", "count"])
    in_gold: dict[str, int] = collections.Counter()
    for row in gold.to_pylist():
        if row["grain"] == "day":
            in_gold[f"{row['command']}.{row['outcome']}"] += row["count"]
    in_records: dict[str, int] = collections.Counter()
    for key in counts:
        in_records.update(records.get(key, {}))
    print(
        json.dumps(
            {
                "records": len(counts),
                "twice": sum(1 for count in counts.values() if count > 1),
                "invented": len(set(counts) - set(records)),
                "later": len(set(records) - set(counts)),
                "gold": in_gold == in_records,
                "sends": in_records.get("SEND.OK", 0),
            }
        )
    )


main()
sys.stdout.flush()
os._exit(0)  # a thread of Arrow's reader can abort an interpreter that ends while the machine is busy
