"""The table of handlers. Importing this module registers the handler of every declared command (`@handles`).

The story of a command is in the module with the command's name, or in that of its twin: SKEY in key, LKEY in lget,
NSUBS in subs. (`del` is a keyword of Python, so DEL is in del_.)
"""

from __future__ import annotations

from weir.router.commands import (
    ack,
    del_,
    get,
    key,
    ldel,
    lget,
    lset,
    ndel,
    new,
    nkey,
    nsub,
    off,
    pfwd,
    ping,
    prxy,
    que,
    rfwd,
    rkey,
    rslv,
    send,
    sub,
    subs,
)
from weir.router.commands.handler import HANDLERS
from weir.wire.smp.commands import DECLARATIONS

__all__ = ["HANDLERS", "MODULES"]

MODULES = (
    *(ack, del_, get, key, ldel, lget, lset, ndel, new, nkey, nsub),
    *(off, pfwd, ping, prxy, que, rfwd, rkey, rslv, send, sub, subs),
)

_missing = [kind.__name__ for kind in DECLARATIONS if kind not in HANDLERS]
if _missing:
    raise TypeError(f"no handler for {', '.join(_missing)}")
