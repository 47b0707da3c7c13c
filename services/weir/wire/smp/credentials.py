"""The SMP replies that may or must not carry an entity id. The rules for commands are in commands.py."""

from typing import Final

from weir.wire.credentials import reply_check
from weir.wire.smp.replies import ALLS, ERR, IDS, PKEY, PONG, RNAME, RRES

check_reply: Final = reply_check(
    either=frozenset((IDS, ERR)), without_entity=frozenset((PONG, PKEY, RRES, ALLS, RNAME))
)
