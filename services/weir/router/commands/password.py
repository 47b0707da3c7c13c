"""The password that the operator may require for creating queues and for using the proxy."""

from __future__ import annotations

import hmac


def password_fits(password: str | None, given: bytes | None) -> bool:
    return password is None or (given is not None and hmac.compare_digest(password.encode(), given))
