"""The common ground of the store's concerns: settings, keys, sealing, and the addresses of SMP servers."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.resources import files
from itertools import count
from pathlib import Path
from typing import Any

from weir.notifier.store.keys import Keys
from weir.notifier.store.packing import parse_token
from weir.notifier.store.records import MAX_NOTIFICATIONS, PNMessageData, Push, PushKind
from weir.notifier.store.sealing import Damaged, Sealer
from weir.redis.durability import Mode
from weir.redis.topology import Topology
from weir.runtime.cache import Cache
from weir.runtime.state import calls
from weir.runtime.state.placement import Placement
from weir.wire.address import ServerHost
from weir.wire.ntf.types import SmpQueueNtf
from weir.wire.parts import read_server_host, server_host

LUA = (files("weir.notifier.store") / "lua", calls.LUA)
OK, GONE, AUTH, FENCED, STALE, EXISTS = range(6)  # what scripts answer: lua/include/status.lua
TRIES = 10  # attempts of a call that others keep overtaking
_KINDS = {kind.value: kind for kind in PushKind}
_ADDRESSES = 10_000


@dataclass(frozen=True, slots=True)
class StoreConfig:
    """All times are in seconds."""

    url: str
    placement_key: bytes
    storage_key: bytes  # seals secrets
    prefix: str = "ntf"
    password: str | None = None  # overrides the password in the URL
    password_file: Path | None = None  # overrides both; read for each connection
    edge: bytes = b""
    durability: Mode = Mode.EVERYSEC
    replicas: int = 1
    replication_limit: float = 1.0
    deadline: float = 5.0
    connect_timeout: float = 10.0
    lease: float = 4.0
    lease_refresh: float = 1.0
    poll: float = 5.0
    claim: float = 30.0  # a push that is not done by then is claimed again: longer than any provider's time-out
    cache: int = 100_000  # notifiers whose subscription an edge remembers


class Core(calls.Calls):
    """Each concern gets this object."""

    def __init__(self, config: StoreConfig, topology: Topology) -> None:
        super().__init__(topology, Placement(config.placement_key), config.edge)
        self.config = config
        self.keys = Keys(topology.partitions)
        self.sealer = Sealer(config.storage_key)
        self.claim_ms = int(config.claim * 1000)
        self.notifiers: Cache[bytes] = Cache(config.cache)  # server id ‖ notifier id → subscription id
        self._addresses: Cache[ServerHost] = Cache(_ADDRESSES)  # by digest
        self._claims = count(1)

    def new_claim(self) -> bytes:
        return b"%b:%d" % (self.edge, next(self._claims))

    # Addresses

    def remember(self, digest: bytes, address: ServerHost) -> None:
        self._addresses.put(digest, address)

    async def resolve(self, digests: Iterable[bytes]) -> dict[bytes, ServerHost]:
        """The addresses with these digests, from the cache or in one round trip."""
        found: dict[bytes, ServerHost] = {}
        missing: list[bytes] = []
        for digest in dict.fromkeys(digests):
            address = self._addresses.get(digest)
            if address is None:
                missing.append(digest)
            else:
                found[digest] = address
        if missing:
            packed = await self.read_registry(b"HMGET", self.keys.addresses, *missing)
            for digest, raw in zip(missing, packed, strict=True):
                if raw is not None:
                    found[digest] = address = unpack_address(raw)
                    self._addresses.put(digest, address)
        return found

    # Pushes

    async def readable_push(self, raw: list[Any]) -> Push | None:
        """As `push`. None for a damaged token, which must not hold up others."""
        try:
            return await self.push(raw)
        except Damaged:
            self.count_damaged()
            return None

    def count_damaged(self) -> None:
        self.topology.failures.count("damaged")

    async def push(self, raw: list[Any]) -> Push:
        """A push as include/push.lua answers it."""
        kind, number, claim, token_id = raw[:4]
        token = parse_token(self.sealer, token_id, self.partition(token_id), raw[4:11])
        messages: tuple[PNMessageData, ...] = ()
        if len(raw) > 11:
            entries = raw[11 : 11 + MAX_NOTIFICATIONS]
            addresses = await self.resolve(entry[_ADDRESS] for entry in entries)
            messages = tuple(
                _message(entry, addresses[entry[_ADDRESS]]) for entry in entries if entry[_ADDRESS] in addresses
            )
        return Push(token, _KINDS[kind], messages, int(number), claim)


# An entry of a token's last notifications: subscription id (24) ‖ time (8, Unix seconds) ‖ nonce (24) ‖ digest of the
# SMP server's address (8) ‖ length of the notifier id (1) ‖ notifier id ‖ metadata. received.lua puts it together.
_TIME, _NONCE, _ADDRESS, _LENGTH = slice(24, 32), slice(32, 56), slice(56, 64), 64


def entry_parts(ts: int, nonce: bytes, notifier_id: bytes, meta: bytes) -> tuple[bytes, bytes]:
    """The parts of an entry around the address."""
    return ts.to_bytes(8, "big") + nonce, b"%c%b%b" % (len(notifier_id), notifier_id, meta)


def _message(entry: bytes, server: ServerHost) -> PNMessageData:
    end = _LENGTH + 1 + entry[_LENGTH]
    queue = SmpQueueNtf(server, entry[_LENGTH + 1 : end])
    return PNMessageData(queue, int.from_bytes(entry[_TIME], "big"), entry[_NONCE], entry[end:])


def pack_address(address: ServerHost) -> bytes:
    return server_host(address)


def unpack_address(packed: bytes) -> ServerHost:
    return read_server_host(packed, 0)[0]


def today() -> int:
    return int(time.time()) // 86400
