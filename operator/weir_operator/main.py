"""`weir operator`: wait for the Lease, work while holding it, and hand it on when told to stop.

Every replica serves health and metrics. Only the holder of the Lease runs kopf. A replica that loses the Lease ends at
once, without tidying up, because another replica may be at work by then: Kubernetes starts it afresh.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
from collections.abc import Coroutine, Sequence
from typing import Any

import kopf
import uvloop

from weir_operator import metrics, web
from weir_operator.kinds import names
from weir_operator.kinds.resources import RESOURCES
from weir_operator.kube.api import Api
from weir_operator.kube.lease import Lease
from weir_operator.kube.login import Login
from weir_operator.runtime import Runtime
from weir_operator.settings import Settings, parse

_log = logging.getLogger(__name__)


def main(argv: Sequence[str]) -> int:
    settings = parse(argv)
    logging.basicConfig(level=settings.log_level.upper(), format="%(asctime)s %(levelname)s %(message)s")
    # kopf logs the details of its own work at lower levels.
    logging.getLogger("kopf").setLevel(logging.WARNING)
    # kopf asks for the name of the user, and a pod's user may have none.
    os.environ.setdefault("LOGNAME", "weir")
    return uvloop.run(_run(settings))


async def _run(settings: Settings) -> int:
    stop = asyncio.Event()
    _stop_on_signals(stop)
    try:
        runner = await web.serve(settings.http_listen, settings.http_port)
    except OSError as error:
        _log.error("cannot listen on %s:%d: %s", settings.http_listen, settings.http_port, error.strerror)
        return 1
    except UnicodeError:
        _log.error("cannot listen on %s:%d: not a host name", settings.http_listen, settings.http_port)
        return 1
    login = Login(names.MANAGER, lambda verb, code: metrics.API_REQUESTS.labels(verb, code).inc())
    # The Lease has connections of its own, so that its renewal never waits behind other requests.
    lease_api = Api(login, RESOURCES, names.MANAGER)
    lease = Lease(lease_api, settings.own_namespace, names.MANAGER, settings.identity, settings.lease_seconds)
    api = Api(login, RESOURCES, names.MANAGER, may_write=lease.is_held)
    try:
        return await _lead(lease, api, login, settings, stop)
    except kopf.LoginError as error:
        _log.error("%s", error)
        return 1
    finally:
        await runner.cleanup()
        await api.close()
        await lease_api.close()


def _stop_on_signals(stop: asyncio.Event) -> None:
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)


async def _lead(lease: Lease, api: Api, login: Login, settings: Settings, stop: asyncio.Event) -> int:
    if not await _done_before(lease.acquire(), stop):
        return 0
    _log.info("working as %s", settings.identity)
    metrics.LEADER.set(1)
    holding = asyncio.create_task(lease.hold())
    try:
        while not stop.is_set() and not holding.done():
            await _work(Runtime(api, login, settings), stop, holding)
    finally:
        metrics.LEADER.set(0)
    if holding.done() and not stop.is_set():
        _log.error("the lease is lost", exc_info=holding.exception())
        return 1
    holding.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await holding
    await lease.release()
    return 0


async def _work(runtime: Runtime, stop: asyncio.Event, holding: asyncio.Task[None]) -> None:
    """One run of kopf. It ends on `stop`, when the Lease is lost, or when the cluster's optional APIs have changed."""
    round_over = asyncio.Event()

    async def watch() -> None:
        await asyncio.wait([asyncio.create_task(stop.wait()), holding], return_when=asyncio.FIRST_COMPLETED)
        round_over.set()

    watching = asyncio.create_task(watch())
    # kopf installs signal handlers of its own when it starts, and would then take five seconds to end. Ours are
    # installed again after its start.
    running = asyncio.create_task(runtime.run(round_over, lambda: _stop_on_signals(stop)))
    try:
        await asyncio.wait([running, watching], return_when=asyncio.FIRST_COMPLETED)
        if holding.done():
            running.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await running
        if not round_over.is_set():
            # kopf has ended by itself: a signal came before our handlers were installed again.
            stop.set()
    finally:
        watching.cancel()


async def _done_before(work: Coroutine[Any, Any, None], stop: asyncio.Event) -> bool:
    """Run `work` until it ends or `stop` is set. Return whether it has ended."""
    task = asyncio.create_task(work)
    ending = asyncio.create_task(stop.wait())
    await asyncio.wait([task, ending], return_when=asyncio.FIRST_COMPLETED)
    ending.cancel()
    if not task.done():
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
        return False
    task.result()
    return True
