"""Notes from which input each day was computed, kept in a small table of its own beside the others."""

from datetime import date
from typing import Final

from weir.pipeline.tables.days import SOURCES, Inputs, Progress, hashes
from weir.pipeline.tables.store import Store

NAME: Final = "state/tables"
_CLOSED: Final = "closed "


def read_inputs(store: Store) -> Inputs:
    read = {name: store.files(name) for names in SOURCES.values() for name in names}
    return Inputs(
        {name: version for name, (version, _) in read.items()},
        {source: hashes(read[name][1] for name in names) for source, names in SOURCES.items()},
    )


def load(store: Store) -> Progress:
    stored = store.read(NAME, ("source", "day", "hash"))
    found: dict[str, dict[date, str]] = {}
    closed: dict[str, date] = {}
    for row in [] if stored is None else stored.to_pylist():
        if row["source"].startswith(_CLOSED):
            closed[row["source"].removeprefix(_CLOSED)] = row["day"]
        else:
            found.setdefault(row["source"], {})[row["day"]] = row["hash"]
    return Progress(found, closed)


def save(store: Store, progress: Progress) -> None:
    rows = [(source, day, digest) for source, days in progress.hashes.items() for day, digest in sorted(days.items())]
    rows += [(_CLOSED + layer, day, "") for layer, day in progress.closed.items()]
    sources, days, digests = zip(*rows, strict=True) if rows else ((), (), ())
    store.overwrite(NAME, {"source": sources, "day": days, "hash": digests})
