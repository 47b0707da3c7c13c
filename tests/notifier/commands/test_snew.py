"""SNEW, SCHK and SDEL: whose subscription a queue gets, and in which statuses of the token."""

from tests.notifier.router import Device, Router, err, smp_queue
from weir.crypto.keys import generate
from weir.wire.errors import Simple
from weir.wire.ntf.types import IDSUB, OK, SCHK, SDEL, SUB, SubStatus


async def test_a_subscription_is_made_and_the_subscriber_hears_of_its_server(router: Router, device: Device) -> None:
    token = await device.activate()
    sub_id = await token.subscription()
    assert await token.do(SCHK(), sub_id) == SUB(SubStatus.NEW)
    assert len(router.unowned) == 1, "no edge owns the SMP server"
    assert router.shared.stats.subCreated == 1


async def test_behaviour_3_a_repeated_snew_answers_the_same_id(router: Router, device: Device) -> None:
    token, queue, key = await device.activate(), smp_queue(), generate("ed25519")
    first = await token.subscribe(queue, key)
    assert isinstance(first, IDSUB)
    assert await token.subscribe(queue, key) == first
    assert router.shared.stats.subCreated == 1


async def test_behaviour_3_another_notifier_key_is_refused(device: Device) -> None:
    token, queue = await device.activate(), smp_queue()
    assert isinstance(await token.subscribe(queue), IDSUB)
    assert await token.subscribe(queue) == err(Simple.AUTH)


async def test_a_notifier_belongs_to_one_token(device: Device) -> None:
    first, second = await device.activate(), await device.activate()
    queue, key = smp_queue(), generate("ed25519")
    assert isinstance(await first.subscribe(queue, key), IDSUB)
    assert await second.subscribe(queue, key) == err(Simple.AUTH)


async def test_a_token_that_is_not_active_cannot_subscribe(device: Device) -> None:
    token = await device.register()
    assert await token.subscribe() == err(Simple.AUTH)
    await token.code()
    assert await token.subscribe() == err(Simple.AUTH)


async def test_a_subscription_is_deleted(router: Router, device: Device) -> None:
    token = await device.activate()
    sub_id = await token.subscription()
    assert await token.do(SDEL(), sub_id) == OK()
    assert await token.do(SDEL(), sub_id) == err(Simple.AUTH)
    assert await token.do(SCHK(), sub_id) == err(Simple.AUTH)
    assert router.shared.stats.subDeleted == 1


async def test_another_tokens_subscription(device: Device) -> None:
    first, second = await device.activate(), await device.activate()
    sub_id = await first.subscription()
    assert await second.do(SCHK(), sub_id) == err(Simple.AUTH)
    assert await second.do(SDEL(), sub_id) == err(Simple.AUTH)
    assert await first.do(SCHK(), sub_id) == SUB(SubStatus.NEW)
