"""Pushes for tests, and what a device makes of them."""

from __future__ import annotations

import base64
import json
import os
from typing import Any

from weir.crypto.boxes import cb_decrypt
from weir.crypto.keys import dh, generate
from weir.notifier.store.records import Push, PushKind, Token
from weir.wire.address import ServerHost
from weir.wire.ntf.push import PNMessageData, decode_messages
from weir.wire.ntf.types import DeviceToken, PushProvider, SmpQueueNtf, TokenStatus

APNS = DeviceToken(PushProvider.APNS_PROD, b"ab" * 32)


def token(device: DeviceToken = APNS, *, id: bytes | None = None) -> Token:
    pair, theirs = generate(), generate("ed25519")
    return Token(
        id=id or os.urandom(24),
        partition=0,
        rev=1,
        device=device,
        status=TokenStatus.ACTIVE,
        verify_key=theirs.spki,
        dh_private=pair.private,
        dh_secret=dh(generate().public, pair.private),
        code=os.urandom(32),
        cron=0,
    )


def message(number: int = 0, *, hosts: int = 1, meta: int = 100) -> PNMessageData:
    names = tuple(b"smp%d.example.org" % host for host in range(hosts))
    server = ServerHost(names, b"5223", bytes(32))
    return PNMessageData(SmpQueueNtf(server, bytes(24)), 1_700_000_000 + number, bytes(24), bytes(meta))


def push(*messages: PNMessageData, kind: PushKind = PushKind.MESSAGES, of: Token | None = None, seq: int = 1) -> Push:
    return Push(of or token(), kind, messages, seq, b"claim")


def opened(of: Token, data: bytes) -> list[PNMessageData] | bytes | None:
    """Decrypt notification data as the device: messages, or the code of a verification, or None for a check."""
    value: dict[str, Any] = json.loads(data)
    value = value.get("notificationData", value)
    if value.get("checkMessages"):
        return None
    name = "message" if "message" in value else "verification"
    nonce, box = (base64.urlsafe_b64decode(value[key]) for key in ("nonce", name))
    plain = cb_decrypt(of.dh_secret, nonce, box)
    assert plain is not None
    return decode_messages(plain) if name == "message" else plain
