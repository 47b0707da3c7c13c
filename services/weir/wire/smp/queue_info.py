"""QueueInfo, the answer to QUE: JSON with the names and the order that the protocol sets (protocol, "INFO")."""

import base64
import json
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum
from typing import Any


class SubThread(Enum):
    NO_SUB = "noSub"
    SUB_PENDING = "subPending"
    SUB_THREAD = "subThread"
    PROHIBIT_SUB = "prohibitSub"


class MsgType(Enum):
    MESSAGE = "message"
    QUOTA = "quota"


@dataclass(frozen=True, slots=True)
class QSub:
    """The subscription. `delivered` is the id of the message in flight as base64 text."""

    thread: SubThread
    delivered: str | None = None


@dataclass(frozen=True, slots=True)
class MsgInfo:
    msg_id: str
    msg_ts: str
    msg_type: MsgType

    @staticmethod
    def of(msg_id: bytes, seconds: int, msg_type: MsgType) -> "MsgInfo":
        stamp = datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        return MsgInfo(base64.b64encode(msg_id).decode(), stamp, msg_type)


@dataclass(frozen=True, slots=True)
class QueueInfo:
    snd: bool
    ntf: bool
    sub: QSub | None
    size: int
    msg: MsgInfo | None

    def to_json(self) -> bytes:
        value: dict[str, Any] = {"qiSnd": self.snd, "qiNtf": self.ntf}
        if self.sub is not None:
            value["qiSub"] = {"qSubThread": self.sub.thread.value}
            if self.sub.delivered is not None:
                value["qiSub"]["qDelivered"] = self.sub.delivered
        value["qiSize"] = self.size
        if self.msg is not None:
            value["qiMsg"] = {
                "msgId": self.msg.msg_id,
                "msgTs": self.msg.msg_ts,
                "msgType": self.msg.msg_type.value,
            }
        return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()

    @staticmethod
    def from_json(text: bytes) -> "QueueInfo | None":
        """Parse a queue's info; None if the text is not one. Unknown members are ignored."""
        try:
            value = json.loads(text.decode())
        except (ValueError, RecursionError):
            return None
        if not isinstance(value, dict):
            return None
        snd, ntf, size = value.get("qiSnd"), value.get("qiNtf"), value.get("qiSize")
        sub, msg = value.get("qiSub"), value.get("qiMsg")
        if not (isinstance(snd, bool) and isinstance(ntf, bool) and isinstance(size, int)) or isinstance(size, bool):
            return None
        parsed_sub = None if sub is None else _sub(sub)
        parsed_msg = None if msg is None else _msg(msg)
        if (parsed_sub is None) != (sub is None) or (parsed_msg is None) != (msg is None):
            return None
        return QueueInfo(snd, ntf, parsed_sub, size, parsed_msg)


_THREADS = {thread.value: thread for thread in SubThread}
_TYPES = {msg_type.value: msg_type for msg_type in MsgType}


def _sub(value: object) -> QSub | None:
    if not isinstance(value, dict):
        return None
    name, delivered = value.get("qSubThread"), value.get("qDelivered")
    thread = _THREADS.get(name) if isinstance(name, str) else None
    if thread is None or not (delivered is None or isinstance(delivered, str)):
        return None
    return QSub(thread, delivered)


def _msg(value: object) -> MsgInfo | None:
    if not isinstance(value, dict):
        return None
    msg_id, msg_ts, name = value.get("msgId"), value.get("msgTs"), value.get("msgType")
    msg_type = _TYPES.get(name) if isinstance(name, str) else None
    if msg_type is None or not isinstance(msg_id, str) or not isinstance(msg_ts, str):
        return None
    return MsgInfo(msg_id, msg_ts, msg_type)
