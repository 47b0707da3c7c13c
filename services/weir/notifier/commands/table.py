"""The table of handlers. Importing this module registers the handler of every declared command (`@handles`).

The story of a command is in the module with the command's name.
"""

from __future__ import annotations

from weir.notifier.commands import ping, schk, sdel, snew, tchk, tcrn, tdel, tnew, trpl, tvfy
from weir.notifier.commands.handler import HANDLERS
from weir.wire.ntf.types import DECLARATIONS

__all__ = ["HANDLERS", "MODULES"]

MODULES = (ping, schk, sdel, snew, tchk, tcrn, tdel, tnew, trpl, tvfy)

_missing = [kind.__name__ for kind in DECLARATIONS if kind not in HANDLERS]
if _missing:
    raise TypeError(f"no handler for {', '.join(_missing)}")
