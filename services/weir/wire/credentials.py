"""The check that a reply carries an entity id exactly where the protocol requires one. SMP and NTF share it."""

from collections.abc import Callable
from typing import Final

from weir.wire.errors import CommandError

_HAS_AUTH: Final = CommandError.HAS_AUTH
_NO_ENTITY: Final = CommandError.NO_ENTITY


def reply_check(
    either: frozenset[type], without_entity: frozenset[type]
) -> Callable[[object, bytes], CommandError | None]:
    """Make a function that checks (reply, entity id). Replies in neither set must have an entity id."""

    def check_reply(reply: object, entity_id: bytes) -> CommandError | None:
        kind = type(reply)
        if kind in either:
            return None
        if kind in without_entity:
            return _HAS_AUTH if entity_id else None
        return None if entity_id else _NO_ENTITY

    return check_reply
