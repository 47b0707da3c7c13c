"""How the control port shows a queue: as the reference prints its types, because scripts look for these words."""

from __future__ import annotations

import json
from dataclasses import replace

from weir.router.store.records import EntityStatus, QueueRecord
from weir.wire.error_codec import decode_blocking_info
from weir.wire.errors import BlockingInfo, BlockingReason
from weir.wire.smp.commands import QueueMode

_STATUS = {EntityStatus.ACTIVE: "EntityActive", EntityStatus.OFF: "EntityOff"}
_REASON = {BlockingReason.SPAM: "BRSpam", BlockingReason.CONTENT: "BRContent"}
_MODE = {QueueMode.MESSAGING: "Just QMMessaging", QueueMode.CONTACT: "Just QMContact", None: "Nothing"}


def read_blocking(text: str) -> BlockingInfo | None:
    """Read `reason=…[,notice={"ttl":…}]`. The notice is rewritten in the form that the reference sends to clients."""
    info = decode_blocking_info(text.encode())
    if info is None or info.notice is None:
        return info
    ttl = _ttl(info.notice)
    return replace(info, notice=json.dumps({} if ttl is None else {"ttl": ttl}, separators=(",", ":")).encode())


def show_queue(record: QueueRecord) -> str:
    updated = f"Just (RoundedSystemTime {{roundedSeconds = {record.day * 86400}}})"
    return f"status: {show_status(record.status)}, updatedAt: {updated}, queueMode: {_MODE[record.mode]}"


def show_status(status: EntityStatus | BlockingInfo) -> str:
    return f"EntityBlocked ({show_blocking(status)})" if isinstance(status, BlockingInfo) else _STATUS[status]


def show_blocking(info: BlockingInfo) -> str:
    return f"BlockingInfo {{reason = {_REASON[info.reason]}, notice = {_notice(info.notice)}}}"


def _notice(notice: bytes | None) -> str:
    if notice is None:
        return "Nothing"
    ttl = _ttl(notice)
    shown = "Nothing" if ttl is None else f"Just {ttl}" if ttl >= 0 else f"Just ({ttl})"
    return f"Just (ClientNotice {{ttl = {shown}}})"


def _ttl(notice: bytes) -> int | None:
    ttl: int | None = json.loads(notice).get("ttl")
    return ttl
