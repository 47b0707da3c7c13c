"""TNEW: registration, repeated and refused."""

import os

from tests.notifier.router import Device, Router, apns_token, err
from weir.crypto.keys import generate
from weir.wire.errors import CommandError, Simple
from weir.wire.ntf.types import IDTKN, TCHK, TKN, TNEW, TVFY, DeviceToken, PushProvider, TokenStatus


async def test_a_token_is_registered_and_its_code_is_pushed(router: Router, device: Device) -> None:
    token = await device.register()
    assert await token.do(TCHK()) in (TKN(TokenStatus.REGISTERED), TKN(TokenStatus.CONFIRMED))
    assert len(await token.code()) == 32
    assert await token.do(TCHK()) == TKN(TokenStatus.CONFIRMED), "behaviour 23: a delivered verification confirms"
    assert router.shared.stats.totals() == {"tknCreated": 1, "ntfVrfQueued": 1}


async def test_behaviour_2_a_repeated_tnew_pushes_the_same_code_again(router: Router, device: Device) -> None:
    token = await device.register()
    code = await token.code()
    again = await device.do(TNEW(token.token, token.key.spki, token.dh_key.public), b"", token.key)
    assert again == token.ids
    assert await token.code() == code
    assert router.shared.stats.totals() == {"tknCreated": 1, "ntfVrfQueued": 2}


async def test_behaviour_2_another_dh_key_is_refused(device: Device) -> None:
    token = await device.register()
    other = generate("x25519")
    assert await device.do(TNEW(token.token, token.key.spki, other.public), b"", token.key) == err(Simple.AUTH)


async def test_behaviour_2_another_verify_key_makes_another_token(device: Device) -> None:
    token = await device.register()
    other = await device.register(token.token)
    assert other.id != token.id


async def test_the_key_in_the_command_must_authorise_it(device: Device) -> None:
    key, other = generate("x25519"), generate("x25519")
    command = TNEW(apns_token(), key.spki, generate("x25519").public)
    assert await device.do(command, b"", other) == err(Simple.AUTH)
    assert isinstance(await device.do(command, b"", key), IDTKN)


async def test_providers_without_what_they_need_are_refused(device: Device) -> None:
    for provider in (PushProvider.APNS_TEST, PushProvider.APNS_DEV):
        key = generate("x25519")
        command = TNEW(DeviceToken(provider, os.urandom(32)), key.spki, generate("x25519").public)
        assert await device.do(command, b"", key) == err(CommandError.PROHIBITED)


async def test_behaviour_4_null_tokens_are_not_counted(router: Router, device: Device) -> None:
    """Any code makes a null token active: no device could know the right one."""
    token = await device.register(DeviceToken(PushProvider.APNS_NULL, os.urandom(8)))
    assert await token.do(TVFY(b"any")) != err(Simple.AUTH)
    await token.subscription()
    assert router.shared.stats.totals() == {}
