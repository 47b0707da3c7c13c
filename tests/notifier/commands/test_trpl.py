"""TRPL: another device token, with the same keys."""

import os

from tests.notifier.router import Device, Router, apns_token, err
from weir.wire.errors import CommandError, Simple
from weir.wire.ntf.types import OK, TCHK, TKN, TRPL, TVFY, DeviceToken, PushProvider, TokenStatus


async def test_behaviour_16_a_new_code_and_the_same_dh_key(router: Router, device: Device) -> None:
    token = await device.activate()
    before = await router.shared.store.tokens.fetch(token.id)
    assert await token.do(TRPL(apns_token())) == OK()
    assert await token.do(TCHK()) in (TKN(TokenStatus.REGISTERED), TKN(TokenStatus.CONFIRMED))
    after = await router.shared.store.tokens.fetch(token.id)
    assert before is not None and after is not None
    assert (after.dh_private, after.dh_secret) == (before.dh_private, before.dh_secret)
    assert after.code != before.code and after.device != before.device
    assert await token.do(TVFY(before.code)) == err(Simple.AUTH)
    assert await token.do(TVFY(await token.code())) == OK()
    assert router.shared.stats.tknReplaced == 1


async def test_a_provider_that_is_not_taken(device: Device) -> None:
    token = await device.activate()
    assert await token.do(TRPL(DeviceToken(PushProvider.APNS_DEV, os.urandom(32)))) == err(CommandError.PROHIBITED)
    assert await token.do(TCHK()) == TKN(TokenStatus.ACTIVE)
