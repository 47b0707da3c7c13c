"""The rules of the specification for tokens, subscriptions and pushes, in plain Python and without Redis."""

from __future__ import annotations

from dataclasses import dataclass, field
from hashlib import md5

VERIFIABLE = {"REGISTERED", "CONFIRMED", "ACTIVE"}
MAY_SUBSCRIBE = {"ACTIVE", "INVALID"}
COUNTED = {"NEW", "PENDING", "ACTIVE", "INACTIVE"}
NEWEST = 6


@dataclass
class ModelToken:
    device: int
    key: int
    secret: bytes  # of the client's DH key: another one is refused
    status: str = "REGISTERED"
    code: bytes = b""
    verification: bool = True  # due
    unsent: bool = False  # notifications that no push has carried
    cron: int = 0
    check: bool = False
    last: list[tuple[bytes, bytes]] = field(default_factory=list)  # (subscription, nonce), oldest first
    pushing: str | None = None  # the kind of the push under way
    came: set[str] = field(default_factory=set)  # kinds that became due during the push
    waits: bool = False  # for the time of a retry

    def due(self) -> str | None:
        if self.verification:
            return "VERIFICATION"
        if self.status != "ACTIVE":
            return None
        return "MESSAGES" if self.unsent else "CHECK" if self.check else None

    def mark(self, kind: str) -> None:
        setattr(self, {"VERIFICATION": "verification", "MESSAGES": "unsent", "CHECK": "check"}[kind], True)
        if self.pushing is not None:
            self.came.add(kind)

    def clear(self, kind: str) -> None:
        setattr(self, {"VERIFICATION": "verification", "MESSAGES": "unsent", "CHECK": "check"}[kind], False)


@dataclass
class ModelSub:
    token: bytes
    server: int
    notifier: bytes
    key: int
    stored: str = "NEW"
    associated: bool = False
    session: int = -1  # in which it was subscribed


@dataclass
class ModelServer:
    session: int = 0
    service_up: bool = False
    owner: str | None = None


class Model:
    def __init__(self) -> None:
        self.tokens: dict[bytes, ModelToken] = {}
        self.subs: dict[bytes, ModelSub] = {}
        self.servers: dict[int, ModelServer] = {}

    # Tokens

    def registration(self, device: int, key: int) -> bytes | None:
        """The token that TNEW finds."""
        return next((i for i, t in self.tokens.items() if (t.device, t.key) == (device, key)), None)

    def register_again(self, token_id: bytes) -> None:
        token = self.tokens[token_id]
        if token.status not in VERIFIABLE:
            token.status = "REGISTERED"
        token.mark("VERIFICATION")

    def verify(self, token_id: bytes) -> bool:
        token = self.tokens[token_id]
        if token.status not in VERIFIABLE:
            return False
        token.status = "ACTIVE"
        token.clear("VERIFICATION")
        for other in [i for i, t in self.tokens.items() if t.device == token.device and i != token_id]:
            self.delete(other)
        return True

    def may_replace(self, token_id: bytes, device: int) -> bool:
        return self.registration(device, self.tokens[token_id].key) in (None, token_id)

    def replace(self, token_id: bytes, device: int) -> None:
        token = self.tokens[token_id]
        token.device, token.status = device, "REGISTERED"
        token.pushing, token.waits = None, False
        token.came.clear()
        token.mark("VERIFICATION")

    def delete(self, token_id: bytes) -> None:
        del self.tokens[token_id]
        self.subs = {i: sub for i, sub in self.subs.items() if sub.token != token_id}

    # Subscriptions

    def find(self, server: int, notifier: bytes) -> bytes | None:
        return next((i for i, sub in self.subs.items() if (sub.server, sub.notifier) == (server, notifier)), None)

    def unsubscribe(self, sub_id: bytes) -> None:
        sub = self.subs.pop(sub_id)
        token = self.tokens[sub.token]
        token.last = [entry for entry in token.last if entry[0] != sub_id]

    def status(self, sub_id: bytes) -> str:
        sub = self.subs[sub_id]
        server = self.servers[sub.server]
        if sub.stored != "ACTIVE":
            return sub.stored
        live = server.service_up if sub.associated else sub.session == server.session
        return "ACTIVE" if live else "INACTIVE"

    def totals(self, server: int) -> tuple[int, bytes, int]:
        """(count, idsHash, pending) of a server, from scratch."""
        count, total, pending = 0, 0, 0
        for sub in self.subs.values():
            if sub.server != server:
                continue
            if sub.associated:
                assert sub.stored in COUNTED
                count += 1
                total ^= int.from_bytes(md5(sub.notifier, usedforsecurity=False).digest(), "big")
            elif sub.stored in COUNTED | {"SERVICE", "ERR"}:
                pending += 1
        return count, total.to_bytes(16, "big"), pending

    def to_subscribe(self, server: int) -> set[bytes]:
        """What a walk through the pending subscriptions finds. NEW and INACTIVE become PENDING."""
        found = set()
        for sub_id, sub in self.subs.items():
            if sub.server != server or sub.associated or self.status(sub_id) == "ACTIVE":
                continue
            if sub.stored in COUNTED:
                sub.stored = "PENDING"
            elif sub.stored not in ("SERVICE", "ERR"):
                continue
            found.add(sub_id)
        return found

    def new_session(self, server: int) -> None:
        self.servers[server].session += 1
        self.servers[server].service_up = False

    def subscribed(self, sub_id: bytes, associated: bool) -> None:
        sub = self.subs[sub_id]
        sub.stored, sub.associated, sub.session = "ACTIVE", associated, self.servers[sub.server].session

    def refused(self, sub_id: bytes, status: str) -> None:
        sub = self.subs[sub_id]
        sub.stored, sub.associated = status, False

    def remove_service(self, server: int) -> int:
        removed = 0
        self.servers[server].service_up = False
        for sub in self.subs.values():
            if sub.server == server and sub.associated:
                sub.stored, sub.associated = "INACTIVE", False
                removed += 1
        return removed

    # Notifications and pushes

    def received(self, sub_id: bytes, nonce: bytes) -> bool:
        """Whether the token may be pushed to."""
        token = self.tokens[self.subs[sub_id].token]
        if token.status != "ACTIVE":
            return False
        others = [entry for entry in token.last if entry[0] != sub_id]
        token.last = [*others[1 - NEWEST :], (sub_id, nonce)]
        token.mark("MESSAGES")
        return True

    def claim(self, token_id: bytes) -> str | None:
        token = self.tokens[token_id]
        if token.pushing is not None or token.due() is None:
            return None
        token.pushing = token.due()
        token.came.clear()
        return token.pushing

    def done(self, token_id: bytes, kind: str, outcome: str) -> str | None:
        """The kind of the next push."""
        token = self.tokens[token_id]
        token.pushing = None
        if outcome == "later":
            token.waits = True
            return None
        token.waits = False
        if outcome == "invalid":
            token.status = "INVALID"
            token.verification = token.check = False
        elif kind not in token.came:
            was_due = {"VERIFICATION": token.verification, "MESSAGES": token.unsent, "CHECK": token.check}[kind]
            token.clear(kind)
            if was_due and kind == "VERIFICATION" and outcome == "delivered" and token.status == "REGISTERED":
                token.status = "CONFIRMED"
        return self.claim(token_id)
