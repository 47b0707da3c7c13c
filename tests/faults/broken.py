"""Edges with a fault of their own, to show that the checker finds it: `python -m tests.faults.broken NAME smp edge …`.

Each fault is a change of the Lua scripts, which decide what clients are told.
"""

from __future__ import annotations

import sys

from weir.cli.main import main
from weir.redis import scripts
from weir.router.store.core import LUA

# name → (text of a script, what takes its place, what the checker says)
BROKEN = {
    "a takeover tells nobody": ("then tell(was, own, END, id, '') end", "then end", "believe that they are subscribed"),
    "a deletion tells nobody": ("tell(r[2], own, DELETED, id, '')", "r[2] = nil", "did not hear DELD"),
    "an acknowledged message stays": ("local body = tag .. ':b:' .. ARGV[2]", "do return REMOVED end", "after its ACK"),
    "a message is not stored": ("local first = entry\n", "local first = entry\nredis.call('RPOP', m)\n", "is lost"),
    "a count drifts": ("s.count = s.count + by", "s.count = s.count + 2 * by", "SUBS answers"),
}


def mutate(name: str) -> None:
    old, new, _ = BROKEN[name]
    expand = scripts.expand
    assert any(old in expand(LUA, script) for script in scripts.names(LUA)), f"no script contains {old!r}"
    scripts.expand = lambda *which, **options: expand(*which, **options).replace(old, new)


if __name__ == "__main__":
    mutate(sys.argv.pop(1))
    sys.exit(main())
