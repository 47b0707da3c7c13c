"""`weir up --traces`: a SUBS, looked at in the local trace viewer with a real browser."""

import asyncio
import json
import time
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait

from tests.router.fleet import Peer
from tests.support.browser import browser, screenshot
from tests.support.up import Up, spawn, weir_up
from weir.client.smp import SmpClient
from weir.crypto.certificates import make_self_signed
from weir.transport.smp import ServiceCredentials
from weir.wire.smp.commands import ServiceRole
from weir.wire.smp.ids_hash import EMPTY
from weir.wire.smp.replies import ALLS, OK

QUEUES = 150


def get(url: str) -> Any:
    with urllib.request.urlopen(url, timeout=10) as answer:
        return json.load(answer)


def wait_for(url: str) -> Any:
    """Return the viewer's answer, once it has something."""
    limit = time.monotonic() + 90
    while time.monotonic() < limit:
        try:
            if found := get(url):
                return found
        except (urllib.error.URLError, ConnectionError):
            pass
        time.sleep(0.3)
    raise AssertionError(f"nothing at {url}")


async def use(up: Up) -> None:
    """A service reconnects while messages wait for it."""
    service = ServiceCredentials.self_signed(ServiceRole.MESSAGING, make_self_signed())
    owner = Peer(await SmpClient.connect(up.address, service=service))
    queues = [await owner.new() for _ in range(QUEUES)]
    await owner.close()
    sender = Peer(await SmpClient.connect(up.address))
    for queue in queues:
        assert await sender.send(queue, b"hello") == OK()
    owner = Peer(await SmpClient.connect(up.address, service=service))
    await owner.smp.subscribe_service(ServiceRole.MESSAGING, QUEUES, EMPTY)
    while (await owner.event()).reply != ALLS():
        pass
    await owner.close()
    await sender.close()


@pytest.mark.needs("java", "mvn", "chromium", "chromedriver")
@pytest.mark.timeout(420)
async def test_the_trace_of_a_subs_can_be_looked_at(tmp_path: Path) -> None:
    with weir_up(tmp_path / "home", "--traces", start_limit=200) as up:
        viewer = up.run["traces"]
        await asyncio.to_thread(wait_for, f"{viewer}/health")
        await use(up)
        (trace,) = await asyncio.to_thread(wait_for, f"{viewer}/api/v2/traces?spanName=subs")
        while len([span for span in trace if span["name"] == "msg"]) < QUEUES:  # spans arrive in batches
            await asyncio.sleep(0.3)
            (trace,) = await asyncio.to_thread(get, f"{viewer}/api/v2/traces?spanName=subs")
        names = {span["name"] for span in trace}
        assert {"subs", "takeover", "soks", "fold.page", "msg", "alls"} <= names
        with browser(width=1150, height=760) as chrome:
            await asyncio.to_thread(chrome.get, f"{viewer}/zipkin/traces/{trace[0]['traceId']}")
            body = (By.TAG_NAME, "body")
            await asyncio.to_thread(
                WebDriverWait(chrome, 30).until,
                lambda c: all(word in c.find_element(*body).text for word in ("takeover", "fold.page", "msg")),
            )
            screenshot(chrome, "subs-trace")
        _, output = await asyncio.to_thread(up.stop)
    assert f"traces    {viewer}/zipkin/" in output
    with pytest.raises(urllib.error.URLError):
        get(f"{viewer}/health")


def test_without_java_it_says_how_to_get_it(tmp_path: Path) -> None:
    process = spawn(tmp_path / "home", "--smp-port", "0", "--http-port", "0", "--traces", environ={"PATH": "/nowhere"})
    output, _ = process.communicate(timeout=30)
    assert process.returncode == 1
    assert output == (
        "weir up: --traces needs Java 17 or newer for the trace viewer (Debian: apt install openjdk-17-jre-headless)\n"
    )
