"""The encrypted part of a push notification: the queues that have a message (push notifications protocol).

The part travels in JSON and is therefore text: `smp://…@host/notifierId ntfTs nonce encryptedMeta`. `;` separates
several queues.
"""

import base64
import binascii
import re
from typing import NamedTuple

from weir.wire.address import SmpAddress, format_server
from weir.wire.ntf.types import SmpQueueNtf

_DATA = re.compile(rb"(smp://[\x21-\x7e]+?)/([A-Za-z0-9_=-]+) (-?[0-9]{1,18}) ([A-Za-z0-9_=-]+) ([A-Za-z0-9_=-]*)")


class PNMessageData(NamedTuple):
    """`ntf_ts` is in seconds. `nonce` and `meta` are those of NMSG."""

    queue: SmpQueueNtf
    ntf_ts: int
    nonce: bytes
    meta: bytes


def encode_message(value: PNMessageData) -> bytes:
    notifier_id = base64.urlsafe_b64encode(value.queue.notifier_id)
    nonce, meta = base64.urlsafe_b64encode(value.nonce), base64.urlsafe_b64encode(value.meta)
    return b"%s/%s %d %s %s" % (format_server(value.queue.server), notifier_id, value.ntf_ts, nonce, meta)


def encode_messages(values: list[PNMessageData]) -> bytes:
    return b";".join(map(encode_message, values))


def decode_message(text: bytes) -> PNMessageData | None:
    match = _DATA.fullmatch(text)
    if match is None:
        return None
    address = SmpAddress.parse(match[1].decode())
    try:
        notifier_id, nonce, meta = (base64.urlsafe_b64decode(match[part]) for part in (2, 4, 5))
    except binascii.Error:
        return None
    if address is None or address.basic_auth is not None or len(nonce) != 24:
        return None
    return PNMessageData(SmpQueueNtf(address.server_host, notifier_id), int(match[3]), nonce, meta)


def decode_messages(text: bytes) -> list[PNMessageData] | None:
    values = []
    for one in text.split(b";"):
        value = decode_message(one)
        if value is None:
            return None
        values.append(value)
    return values
