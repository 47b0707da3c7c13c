"""Secrets at rest: nothing that a thief of Redis' data could use is readable there."""

import pytest

from tests.notifier.store.conftest import OpenEdge
from tests.notifier.store.harness import KEY, SMP1, device, open_edge, queue
from tests.support.redis import RedisServer
from tests.support.store_edge import dump
from weir.crypto.keys import generate, parse_private
from weir.notifier.store.records import ServiceKeys
from weir.notifier.store.sealing import Damaged, Sealer
from weir.redis.errors import StoreError
from weir.wire.ntf.types import DeviceToken, PushProvider


def test_a_box_opens_with_its_key_and_for_its_purpose() -> None:
    sealer = Sealer(bytes(32))
    sealed = sealer.seal(b"token keys", b"secret")
    assert sealer.open(b"token keys", sealed) == b"secret"
    assert sealed != sealer.seal(b"token keys", b"secret")
    for other, purpose, box in (
        (Sealer(b"1" * 32), b"token keys", sealed),
        (sealer, b"device token", sealed),
        (sealer, b"token keys", sealed[:-1]),
        (sealer, b"token keys", b""),
        (sealer, b"token keys", sealed[:-1] + bytes([sealed[-1] ^ 1])),
    ):
        with pytest.raises(Damaged):
            other.open(purpose, box)


def test_a_secret_of_an_id() -> None:
    sealer = Sealer(bytes(32))
    sealed = sealer.seal_for(b"notifier key", b"i" * 24, b"secret")
    assert sealer.open_for(b"notifier key", b"i" * 24, sealed) == b"secret"
    with pytest.raises(Damaged):
        sealer.open_for(b"notifier key", b"j" * 24, sealed)


def test_the_storage_key_has_a_length() -> None:
    with pytest.raises(ValueError, match="32 bytes"):
        Sealer(b"short")


def test_digests_differ_by_purpose_provider_and_key() -> None:
    one, other = Sealer(bytes(32)), Sealer(b"1" * 32)
    given = DeviceToken(PushProvider.APNS_PROD, b"token")
    assert one.device(given) == Sealer(bytes(32)).device(given) != other.device(given)
    assert one.device(given) != one.device(DeviceToken(PushProvider.APNS_DEV, b"token"))
    assert one.verify_key(b"x")[:8] != one.address(b"x") != one.server_id(b"x")[:8]


async def test_nothing_secret_is_in_redis(open_one: OpenEdge) -> None:
    edge = await open_one()
    given, moved, ntf_key = device(), device(), generate("ed25519")
    token = await edge.active(given)
    sub = await edge.subscription(token, queue(SMP1, b"n" * 24), ntf_key.pkcs8)
    keys = ServiceKeys(b"certificate" * 9, b"private key" * 9)
    await edge.store.servers.set_credentials(sub.server_id, keys)
    await edge.store.tokens.replace(token, moved)
    replaced = await edge.fetched(token)
    private = parse_private(ntf_key.pkcs8)
    assert private is not None
    secrets = [
        given.token,
        moved.token,
        token.code,
        replaced.code,
        token.dh_private,
        token.dh_secret,
        private[1],
        keys.private_key,
    ]
    stored = repr(await dump(edge.store.core, lambda _: False, frozenset()))
    assert repr(KEY.public)[2:-1] in stored, "the dump shows what is not secret"
    for secret in secrets:
        assert repr(secret)[2:-1] not in stored


async def test_another_storage_key_is_refused(open_any: OpenEdge, any_redis: RedisServer) -> None:
    await open_any()
    with pytest.raises(StoreError) as caught:
        await open_edge(any_redis.url, storage_key=bytes(32))
    assert str(caught.value) == "the storage key is not the key that the data in this Redis was sealed with"
    with pytest.raises(StoreError, match="placement key"):
        await open_edge(any_redis.url, placement_key=bytes(32))


async def test_a_damaged_record_is_an_error_of_the_store(open_one: OpenEdge) -> None:
    edge = await open_one()
    token = await edge.registered()
    core, p = edge.store.core, token.partition
    await core.ask(p, b"HSET", core.keys.token(p, token.id), b"x", bytes(104))
    with pytest.raises(Damaged):
        await edge.store.tokens.fetch(token.id)


async def test_a_damaged_record_does_not_hold_up_others(open_one: OpenEdge) -> None:
    edge = await open_one()
    token, other = await edge.active(), await edge.registered()
    subs = [await edge.subscription(token) for _ in range(2)]
    epoch = await edge.owned(subs[0].server_id)
    core, p = edge.store.core, token.partition
    await core.ask(p, b"HSET", core.keys.subscription(p, subs[0].id), b"k", bytes(49))
    assert [sub.id for sub in await edge.pending(subs[0].server_id, epoch)] == [subs[1].id]
    await edge.receive(subs[1], claim=())
    await core.ask(p, b"HSET", core.keys.token(p, token.id), b"x", bytes(104))
    assert [push.token.id for push in await edge.due()] == [other.id]
    assert edge.store.failures.counts == {"damaged": 2}
