"""Which commands need an authorisation and an entity id, and which must not have one.

The check that follows parsing, before anything is looked up (protocol, "Command authentication").
"""

from typing import Final

from weir.wire.commands import LGET, NEW, PFWD, PING, PRXY, RFWD, RSLV, SEND, Command
from weir.wire.errors import CommandError
from weir.wire.replies import ALLS, ERR, IDS, PKEY, PONG, RNAME, RRES, Reply

_NO_AUTH: Final = CommandError.NO_AUTH
_HAS_AUTH: Final = CommandError.HAS_AUTH
_NO_ENTITY: Final = CommandError.NO_ENTITY

_NEITHER: Final = frozenset((PING, PRXY, RFWD, RSLV))
_ENTITY_ONLY: Final = frozenset((LGET, PFWD))
_REPLY_ANY: Final = frozenset((IDS, ERR))
_REPLY_NO_ENTITY: Final = frozenset((PONG, PKEY, RRES, ALLS, RNAME))


def check_command(command: Command, has_auth: bool, entity_id: bytes) -> CommandError | None:
    kind = type(command)
    if kind is SEND:  # authorised or not: that depends on the queue
        return None if entity_id else _NO_ENTITY
    if kind in _NEITHER:
        return _HAS_AUTH if has_auth or entity_id else None
    if kind in _ENTITY_ONLY:
        if not entity_id:
            return _NO_ENTITY
        return _HAS_AUTH if has_auth else None
    if kind is NEW:
        if not has_auth:
            return _NO_AUTH
        return _HAS_AUTH if entity_id else None
    return None if has_auth and entity_id else _NO_AUTH


def check_reply(reply: Reply, entity_id: bytes) -> CommandError | None:
    kind = type(reply)
    if kind in _REPLY_ANY:
        return None
    if kind in _REPLY_NO_ENTITY:
        return _HAS_AUTH if entity_id else None
    return None if entity_id else _NO_ENTITY
