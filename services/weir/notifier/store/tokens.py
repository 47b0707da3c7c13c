"""Tokens of devices: TNEW, TVFY, TCHK, TRPL, TCRN, TDEL.

A device's token may be registered several times, with several verify keys. The device's record lists those tokens, in
the partition of the device token's hash. A new token is in that partition too. TRPL changes the device, but not the
token's partition. So an entry of a device's record counts only while its token still has that device: who meets
another one replaces it. Two TVFYs of one device cannot delete each other's token, because one script decides which is
first.
"""

from __future__ import annotations

import asyncio
import os
from dataclasses import replace
from hmac import compare_digest

from weir.crypto.keys import dh, generate
from weir.notifier.store.core import AUTH, GONE, OK, STALE, TRIES, Core, today
from weir.notifier.store.packing import (
    CODE_LENGTH,
    parse_token,
    seal_device,
    token_fields,
    unpack_token_status,
)
from weir.notifier.store.records import Registered, Status, Token
from weir.redis.errors import UNAVAILABLE
from weir.wire.ntf.types import DeviceToken, TokenStatus

_PAGE = 100  # subscriptions of a deleted token that one script call deletes


class Tokens:
    def __init__(self, core: Core) -> None:
        self._core = core
        self._keys = core.keys
        self._sealer = core.sealer

    async def register(self, device: DeviceToken, verify_key: bytes, client_dh: bytes) -> Registered | None:
        """TNEW: make a token, or find the one of the same device and verify key (behaviours 2 and 14).

        None when that one has another DH secret: AUTH. A verification push is due afterwards.
        """
        core = self._core
        device_hash, key_hash = self._sealer.device(device), self._sealer.verify_key(verify_key)
        p = core.partition(device_hash)
        token = _new_token(core.placement.draw(p), p, device, verify_key, client_dh)
        fields = token_fields(self._sealer, token, today())
        stale = b""
        for _ in range(TRIES):
            known = await core.call(
                p,
                "register",
                [self._keys.device(p, device_hash), self._keys.token(p, token.id)],
                [key_hash, stale, *fields],
            )
            if known == OK:
                return Registered(token, True)
            existing = await self._of_device(known, device_hash)
            if existing is None:
                stale = known
                continue
            if not compare_digest(dh(client_dh, existing.dh_private), existing.dh_secret):
                return None
            again = await self._verify_again(existing, device_hash)
            if again is not None:
                return Registered(again, False)
            stale = known
        raise UNAVAILABLE

    async def _of_device(self, token_id: bytes, device_hash: bytes) -> Token | None:
        token = await self.fetch(token_id)
        return token if token is not None and self._sealer.device(token.device) == device_hash else None

    async def _verify_again(self, token: Token, device_hash: bytes) -> Token | None:
        p = token.partition
        raw = await self._core.call(p, "reverify", [self._keys.token(p, token.id)], [device_hash, os.urandom(8)])
        if raw in (GONE, STALE):
            return None
        status, rev = raw
        return replace(token, status=unpack_token_status(status), rev=int(rev))

    async def fetch(self, token_id: bytes) -> Token | None:
        """A token, e.g. for TCHK. Notes the day of use."""
        p = self._core.partition(token_id)
        raw = await self._core.call(p, "fetch_token", [self._keys.token(p, token_id)], [today()])
        return None if raw is None else parse_token(self._sealer, token_id, p, raw[:7])

    async def activate(self, token: Token, code: bytes) -> Status:
        """TVFY: make the token ACTIVE, and delete the device's other tokens with their subscriptions."""
        core, p = self._core, token.partition
        for _ in range(TRIES):
            if not (token.may_verify and compare_digest(code, token.code)):
                return Status.AUTH
            raw = await core.call(p, "activate", [self._keys.token(p, token.id)], [token.rev])
            if raw == OK:
                return await self._expel_others(token)
            found = await self.fetch(token.id) if raw == STALE else None
            if found is None:
                return Status.GONE
            token = found
        raise UNAVAILABLE

    async def _expel_others(self, token: Token) -> Status:
        device_hash = self._sealer.device(token.device)
        p = self._core.partition(device_hash)
        record = self._keys.device(p, device_hash)
        others = await self._core.call(p, "expel", [record], [self._sealer.verify_key(token.verify_key), token.id])
        if others == AUTH:
            return Status.AUTH
        for other in others:
            await self._delete(other, device_hash)
            await self._core.ask(p, b"HDEL", record, b"x" + other)
        return Status.OK

    async def replace(self, token: Token, device: DeviceToken) -> Status:
        """TRPL: give the token another device token and a new code (behaviour 16). A verification push is due then."""
        core = self._core
        new_hash, key_hash = self._sealer.device(device), self._sealer.verify_key(token.verify_key)
        sealed = seal_device(self._sealer, os.urandom(CODE_LENGTH), device)
        for _ in range(TRIES):
            if not await self._enrol(token.id, key_hash, new_hash):
                return Status.AUTH
            old_hash, p = self._sealer.device(token.device), token.partition
            raw = await core.call(
                p, "replace", [self._keys.token(p, token.id)], [token.rev, device.provider.value, sealed, new_hash]
            )
            if raw == OK:
                break
            found = await self.fetch(token.id) if raw == STALE else None
            if found is None:
                await self._unenrol(token.id, key_hash, new_hash)
                return Status.GONE
            token = found
        else:
            raise UNAVAILABLE
        if old_hash != new_hash:
            await self._unenrol(token.id, key_hash, old_hash)
        # Before the script had changed the device, somebody may have taken the entry for a stale one.
        if not await self._enrol(token.id, key_hash, new_hash):
            await self._delete(token.id, new_hash)
            return Status.AUTH
        return Status.OK

    async def _enrol(self, token_id: bytes, key_hash: bytes, device_hash: bytes) -> bool:
        """Add a token to a device. False when the device has another token with the same verify key."""
        p = self._core.partition(device_hash)
        stale = b""
        for _ in range(TRIES):
            known = await self._core.call(p, "enrol", [self._keys.device(p, device_hash)], [key_hash, token_id, stale])
            if known == OK:
                return True
            if await self._of_device(known, device_hash) is not None:
                return False
            stale = known
        raise UNAVAILABLE

    async def _unenrol(self, token_id: bytes, key_hash: bytes, device_hash: bytes) -> None:
        p = self._core.partition(device_hash)
        await self._core.call(p, "unenrol", [self._keys.device(p, device_hash)], [key_hash, token_id])

    async def set_cron(self, token: Token, minutes: int) -> Status:
        """TCRN: 0 for none. The caller has refused 1 to 19. The first periodic push comes after one interval."""
        p = token.partition
        raw = await self._core.call(p, "set_cron", [self._keys.token(p, token.id), self._keys.cron(p)], [minutes])
        return Status.OK if raw == OK else Status.GONE

    async def delete(self, token: Token) -> Status:
        """TDEL: delete the token with its subscriptions."""
        deleted = await self._delete(token.id, b"")
        await self._unenrol(token.id, self._sealer.verify_key(token.verify_key), self._sealer.device(token.device))
        return Status.OK if deleted else Status.GONE

    async def _delete(self, token_id: bytes, device_hash: bytes) -> bool:
        """Delete a token, if it has this device (b"" for any). Return whether it was there."""
        core, p = self._core, self._core.partition(token_id)
        raw = await core.call(p, "drop_token", [self._keys.token(p, token_id), self._keys.cron(p)], [device_hash])
        if raw != STALE:
            await self.finish_deletion(token_id)
        return bool(raw == OK)

    async def finish_deletion(self, token_id: bytes) -> None:
        """Delete the subscriptions of a token that is marked as deleted, and then the token."""
        core, p = self._core, self._core.partition(token_id)
        names = [self._keys.token(p, token_id), self._keys.token_subscriptions(p, token_id)]
        while flat := await core.call(p, "drop_subscriptions", names, [_PAGE]):
            await asyncio.gather(*(self._free(*flat[n : n + 3]) for n in range(0, len(flat), 3)))

    async def check_device(self, p: int, device_hash: bytes) -> bool:
        """Remove the entries of a device's record that point to nothing. Return whether there were any."""
        record = self._keys.device(p, device_hash)
        flat = await self._core.read(p, b"HGETALL", record)
        removed = False
        for field, token_id in zip(flat[::2], flat[1::2], strict=True):
            if field[:1] == b"x":  # TVFY did not finish
                await self._delete(field[1:], device_hash)
                await self._core.ask(p, b"HDEL", record, field)
                removed = True
            elif await self._of_device(token_id, device_hash) is None:
                await self._core.call(p, "unenrol", [record], [field[1:], token_id])
                removed = True
        return removed

    async def _free(self, server_id: bytes, notifier_id: bytes, sub_id: bytes) -> None:
        await free_notifier(self._core, server_id, notifier_id, sub_id)


async def free_notifier(core: Core, server_id: bytes, notifier_id: bytes, sub_id: bytes) -> None:
    """Let the notifier of a deleted subscription be subscribed to again."""
    core.notifiers.drop(server_id + notifier_id)
    p = core.partition(server_id + notifier_id)
    await core.call(p, "free_notifier", [core.keys.notifier(p, server_id, notifier_id)], [sub_id])


def _new_token(token_id: bytes, p: int, device: DeviceToken, verify_key: bytes, client_dh: bytes) -> Token:
    private = generate("x25519").private
    secret, code = dh(client_dh, private), os.urandom(CODE_LENGTH)
    return Token(token_id, p, 1, device, TokenStatus.REGISTERED, verify_key, private, secret, code, 0)
