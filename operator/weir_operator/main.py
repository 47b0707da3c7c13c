"""`weir operator`: waits for the Lease, works while it holds it, hands it on when it stops."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
from collections.abc import Sequence

import kopf
import uvloop

from weir_operator import metrics, web
from weir_operator.api import Api
from weir_operator.lease import Lease
from weir_operator.runtime import Runtime
from weir_operator.settings import Settings, parse

_log = logging.getLogger("weir.operator")


def main(argv: Sequence[str]) -> int:
    settings = parse(argv)
    logging.basicConfig(level=settings.log_level.upper(), format="%(asctime)s %(levelname)s %(message)s")
    # kopf's own words are about its machinery; ours are about routers.
    logging.getLogger("kopf").setLevel(logging.WARNING)
    # kopf asks for the user's name, which a pod's UID may not have.
    os.environ.setdefault("LOGNAME", "weir")
    return uvloop.run(_run(settings))


async def _run(settings: Settings) -> int:
    stop = asyncio.Event()
    _stop_on_signals(stop)
    api = Api()
    try:
        runner = await web.serve(settings.http_listen, settings.http_port)
    except OSError as error:
        _log.error("cannot listen on %s:%d: %s", settings.http_listen, settings.http_port, error.strerror)
        return 1
    try:
        return await _lead(api, settings, stop)
    except kopf.LoginError as error:
        _log.error("%s", error)
        return 1
    finally:
        await runner.cleanup()
        await api.close()


def _stop_on_signals(stop: asyncio.Event) -> None:
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)


async def _lead(api: Api, settings: Settings, stop: asyncio.Event) -> int:
    lease = Lease(api, settings.own_namespace, settings.identity, settings.lease_seconds)
    if not await _first(lease.acquire(), stop):
        return 0
    _log.info("working as %s", settings.identity)
    metrics.LEADER.set(1)
    holding = asyncio.create_task(lease.hold())
    try:
        while not stop.is_set() and not holding.done():
            await _work(api, settings, stop, holding)
    finally:
        metrics.LEADER.set(0)
    if holding.done() and not stop.is_set():
        # Another replica may be at work by now: nothing may be tidied up, and a fresh start is the only safe one.
        _log.error("the lease is lost")
        return 1
    holding.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await holding
    await lease.release()
    return 0


async def _work(api: Api, settings: Settings, stop: asyncio.Event, holding: asyncio.Task[None]) -> None:
    """One round of kopf; it ends when we must stop, or the lease is lost, or the cluster's APIs have changed."""
    round_over = asyncio.Event()

    async def watch() -> None:
        await asyncio.wait([asyncio.create_task(stop.wait()), holding], return_when=asyncio.FIRST_COMPLETED)
        round_over.set()

    watching = asyncio.create_task(watch())
    # kopf takes the signals when it starts, and would then take five seconds to end.
    running = asyncio.create_task(Runtime(api, settings).run(round_over, lambda: _stop_on_signals(stop)))
    try:
        await asyncio.wait([running, watching], return_when=asyncio.FIRST_COMPLETED)
        if holding.done():
            running.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await running
        if not round_over.is_set():
            # kopf has ended by itself: because of a signal that came before we had them back.
            stop.set()
    finally:
        watching.cancel()


async def _first(work: object, stop: asyncio.Event) -> bool:
    """Waits for the work or for the end; whether it was the work."""
    assert asyncio.iscoroutine(work)
    task = asyncio.ensure_future(work)
    ending = asyncio.ensure_future(stop.wait())
    await asyncio.wait([task, ending], return_when=asyncio.FIRST_COMPLETED)
    ending.cancel()
    if not task.done():
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
        return False
    task.result()
    return True
