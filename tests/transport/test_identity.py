"""An online certificate that expires while the router runs."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from pathlib import Path
from shutil import copytree

import pytest

from tests.transport.peer import Dialect, Router
from weir.crypto.identity import renew_online
from weir.transport.client import ConnectError
from weir.wire.errors import HandshakeError

Start = Callable[..., Awaitable[Router]]
SECOND = 1 / 86400


def warnings(caplog: pytest.LogCaptureFixture) -> list[tuple[int, str]]:
    """The log lines about the expiry."""
    return [(record.levelno, record.getMessage()) for record in caplog.records if "expire" in record.getMessage()]


async def test_clients_stay_when_the_certificate_expires_and_return_with_a_new_one(
    start: Start, dialect: Dialect, identity: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    directory = copytree(identity, tmp_path / "identity")
    router = await start(directory, dialect=dialect, reload_interval=0.01, send_timeout=0.2)
    before = await dialect.connect(router.address)
    await router.arrived.wait()
    assert warnings(caplog) == []

    renew_online(directory, "localhost", days=SECOND)
    own = router.listener.identity
    while own.days_to_expiry() > 1:
        await asyncio.sleep(0.05)
    await asyncio.sleep(max(0.0, own.days_to_expiry() / SECOND))
    while (logging.ERROR, EXPIRED) not in warnings(caplog):
        await asyncio.sleep(0.05)
    with pytest.raises(ConnectError) as refused:
        await dialect.connect(router.address)
    assert refused.value.error is HandshakeError.IDENTITY
    assert str(refused.value) == "IDENTITY: the router's certificates: expired, or not yet valid"
    before.send_contents([dialect.ping(before.session)])
    while not router.handlers[0].contents:
        await asyncio.sleep(0.01)

    renew_online(directory, "localhost")
    while own.days_to_expiry() < 1:
        await asyncio.sleep(0.05)
    after = await dialect.connect(router.address)
    assert not before.closing
    assert [level for level, _ in warnings(caplog)] in ([logging.ERROR], [logging.WARNING, logging.ERROR])
    before.close()
    after.close()


EXPIRED = "the online certificate has expired, so new clients refuse it: make a new one (weir smp cert)"


async def test_the_log_warns_once_before_the_expiry(
    start: Start, identity: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    directory = copytree(identity, tmp_path / "identity")
    renew_online(directory, "localhost", days=14)
    router = await start(directory)
    router.listener.identity.reload()
    assert warnings(caplog) == [
        (logging.WARNING, "the online certificate expires in 13 days: make a new one (weir smp cert)")
    ]
    renew_online(directory, "localhost", days=15)
    assert router.listener.identity.reload()
    assert len(warnings(caplog)) == 1


async def test_a_router_that_starts_with_an_expired_certificate_says_so(
    start: Start, identity: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    directory = copytree(identity, tmp_path / "identity")
    renew_online(directory, "localhost", days=-SECOND)
    await start(directory)
    assert warnings(caplog) == [(logging.ERROR, EXPIRED)]
