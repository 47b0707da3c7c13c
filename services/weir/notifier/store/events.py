"""Events as scripts write them into an inbox (include/tell.lua)."""

from __future__ import annotations

from enum import Enum

from weir.notifier.store.records import Event, OwnershipLostEvent, ServerMovedEvent, SubscribeEvent


class Kind(Enum):
    """The first byte of an event; the same letters as in lua/include/event.lua."""

    SUBSCRIBE = b"S"
    MOVED = b"M"
    LOST = b"L"


_KINDS = {kind.value: kind for kind in Kind}


def parse_event(raw: bytes) -> Event:
    """kind ‖ epoch ‖ ':' ‖ length of the server id ‖ server id ‖ subscription id (of SUBSCRIBE)."""
    text, tail = raw[1:].split(b":", 1)
    epoch, end = int(text), 1 + tail[0]
    server_id = tail[1:end]
    match _KINDS[raw[:1]]:
        case Kind.SUBSCRIBE:
            return SubscribeEvent(server_id, epoch, tail[end:])
        case Kind.MOVED:
            return ServerMovedEvent(server_id, epoch)
        case Kind.LOST:
            return OwnershipLostEvent(server_id, epoch)
