"""The query of a notification router's address: the public key with which it signs for push services (VAPID).

A device makes a Web Push subscription with this key, so that nobody else can push to it.
"""

from __future__ import annotations

from weir.crypto.p256 import PrivateKey, public_text


def vapid_query(key: PrivateKey) -> str:
    return "?vapid=" + public_text(key)
