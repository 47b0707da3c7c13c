"""The reference's daily statistics file, from gold: a line for each day that has ended, no header.

A week's number is empty except in the line of a Sunday, and a month's except in that of the month's last day. The
reference writes a day's line when the next day begins: on Mondays, and on the 1st.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import date
from typing import TYPE_CHECKING, Any, Final

from weir.pipeline.errors import PipelineError
from weir.pipeline.tables.columns import DAILY_NTF, DAILY_SMP
from weir.pipeline.tables.declaration import Table

if TYPE_CHECKING:
    from weir.pipeline.tables.store import Store

FILES: Final[Mapping[str, Table]] = {"smp": DAILY_SMP, "ntf": DAILY_NTF}


def lines(table: Table, rows: Iterable[Mapping[str, Any]], today: date) -> Iterator[str]:
    """The lines of one router's days."""
    names = [name for name in table.names if name not in ("router", "day")]
    for row in sorted(rows, key=lambda row: row["day"]):
        if row["day"] < today:
            cells = ("" if row[name] is None else str(row[name]) for name in names)
            yield ",".join([str(row["day"]), *cells])


def read(store: Store, program: str, router: str | None, today: date) -> list[str]:
    """The lines of a router. Its name may be left out if there is only one."""
    table = FILES[program]
    stored = store.read(table.name, table.names)
    rows = [] if stored is None else stored.to_pylist()
    routers = sorted({row["router"] for row in rows})
    if not routers:
        raise PipelineError(f"no {program} router has a day in {store.location(table.name)} (weir pipeline tables)")
    if router is None and len(routers) > 1:
        raise PipelineError(f"say which router (--router): {', '.join(routers)}")
    if router is not None and router not in routers:
        raise PipelineError(f"no router {router}; there are {', '.join(routers)}")
    return [*lines(table, (row for row in rows if row["router"] == (router or routers[0])), today)]
