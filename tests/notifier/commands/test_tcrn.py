"""TCRN: the interval of periodic pushes (behaviour 9)."""

import pytest

from tests.notifier.router import Device, err
from weir.wire.errors import Simple
from weir.wire.ntf.types import OK, TCRN


@pytest.mark.parametrize("minutes", [0, 20, 1440, 65535])
async def test_behaviour_9_zero_and_twenty_minutes_or_more(device: Device, minutes: int) -> None:
    token = await device.activate()
    assert await token.do(TCRN(minutes)) == OK()
    found = await device.router.shared.store.tokens.fetch(token.id)
    assert found is not None and found.cron == minutes


@pytest.mark.parametrize("minutes", [1, 19])
async def test_behaviour_9_less_than_twenty_minutes_is_too_often(device: Device, minutes: int) -> None:
    token = await device.activate()
    assert await token.do(TCRN(minutes)) == err(Simple.QUOTA)
