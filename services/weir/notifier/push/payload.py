"""The content of a push: the notification's data, encrypted with the token's DH secret, and Apple's frame around it.

The data is padded, so that its size tells nothing. The reference pads to 3,072 bytes: its bodies have 4,310 bytes, and
Apple and push services take 4,096. PADDED is the largest padding with which both fit:

    APNs       190 bytes of JSON around base64url(PADDED + 16), which are 3,904 bytes: 4,094
    Web Push   60 bytes of JSON around the same, and 103 bytes of RFC 8291: 4,067

Devices only remove the padding, so its length is the router's choice.
"""

import base64
import os
from collections.abc import Sequence
from typing import Final

from weir.crypto.boxes import NONCE_SIZE, cb_encrypt
from weir.notifier.store.records import Push, PushKind
from weir.wire.ntf.push import PNMessageData, encode_message

PADDED: Final = 2912
LONGEST: Final = PADDED - 2
"""Bytes of data that fit beside the two bytes of their length."""

_CHECK: Final = b'{"checkMessages":true}'
_BACKGROUND: Final = b'{"aps":{"content-available":1},"notificationData":'
_ALERT: Final = (
    b'{"aps":{"mutable-content":1,"alert":"Encrypted message or another app event",'
    b'"category":"NTF_CAT_CHECK_MESSAGE"},"notificationData":'
)


def notification_data(push: Push, nonce: bytes | None = None) -> bytes | None:
    """Return the JSON object for the device. None if there is nothing that fits (an SMP server chose the size)."""
    match push.kind:
        case PushKind.CHECK:
            return _CHECK
        case PushKind.VERIFICATION:
            name, plain = b"verification", push.token.code
        case PushKind.MESSAGES:
            name, plain = b"message", joined(push.messages)
    if not plain:
        return None
    nonce = nonce or os.urandom(NONCE_SIZE)
    box = cb_encrypt(push.token.dh_secret, nonce, plain, PADDED)
    return b'{"nonce":"%s","%s":"%s"}' % (base64.urlsafe_b64encode(nonce), name, base64.urlsafe_b64encode(box))


def joined(messages: Sequence[PNMessageData]) -> bytes:
    """Join the newest messages that fit, oldest first. One that would not fit alone is left out."""
    taken: list[bytes] = []
    room = LONGEST
    for encoded in map(encode_message, reversed(messages)):
        if len(encoded) > LONGEST:
            continue
        if len(encoded) > room:
            break
        taken.append(encoded)
        room -= len(encoded) + 1
    return b";".join(reversed(taken))


def apns_body(kind: PushKind, data: bytes) -> bytes:
    """Messages are an alert that the app may change before it is shown; everything else stays in the background."""
    return (_ALERT if kind is PushKind.MESSAGES else _BACKGROUND) + data + b"}"
