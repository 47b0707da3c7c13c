"""TDEL: the token goes with its subscriptions."""

from tests.notifier.router import Device, Router, err, smp_queue
from weir.crypto.keys import generate
from weir.wire.errors import Simple
from weir.wire.ntf.types import IDSUB, OK, SCHK, TCHK, TDEL


async def test_the_token_and_its_subscriptions_are_gone(router: Router, device: Device) -> None:
    token, queue, key = await device.activate(), smp_queue(), generate("ed25519")
    created = await token.subscribe(queue, key)
    assert isinstance(created, IDSUB)
    assert await token.do(TDEL()) == OK()
    assert await token.do(TDEL()) == err(Simple.AUTH)
    assert await token.do(TCHK()) == err(Simple.AUTH)
    assert await token.do(SCHK(), created.sub_id) == err(Simple.AUTH)
    assert router.shared.stats.tknDeleted == 1
    other = await device.activate()
    assert isinstance(await other.subscribe(queue, key), IDSUB), "the notifier may be subscribed to again"
