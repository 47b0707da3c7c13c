"""TVFY: only the pushed code verifies, and the device's other tokens go."""

from tests.notifier.router import Device, Router, err
from weir.wire.errors import Simple
from weir.wire.ntf.types import OK, TCHK, TKN, TVFY, TokenStatus


async def test_only_the_pushed_code_verifies(router: Router, device: Device) -> None:
    token = await device.register()
    code = await token.code()
    assert await token.do(TVFY(bytes(32))) == err(Simple.AUTH)
    assert await token.do(TVFY(code)) == OK()
    assert await token.do(TCHK()) == TKN(TokenStatus.ACTIVE)
    assert router.shared.stats.tknVerified == 1


async def test_tvfy_may_be_repeated(device: Device) -> None:
    """The first answer may have been lost."""
    token = await device.register()
    code = await token.code()
    assert [await token.do(TVFY(code)) for _ in range(2)] == [OK(), OK()]


async def test_the_other_tokens_of_the_device_are_deleted(device: Device) -> None:
    old = await device.activate()
    sub_id = await old.subscription()
    new = await device.activate(device=old.token)
    assert await old.do(TCHK()) == err(Simple.AUTH)
    assert await old.do(TCHK(), sub_id) == err(Simple.AUTH)
    assert await new.do(TCHK()) == TKN(TokenStatus.ACTIVE)
