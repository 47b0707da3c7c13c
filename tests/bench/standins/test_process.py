"""The stand-ins as a process, as end-to-end tests use it."""

import asyncio
import json
import ssl
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.notifier.push.pushes import message, opened, push
from weir.crypto import p256
from weir.notifier.outcome import Delivered, Invalid
from weir.notifier.push.apns import Apns, WebTokens
from weir.notifier.push.http.client import Client
from weir.notifier.push.http.exchange import Origin
from weir.notifier.push.http.pool import Pool
from weir.wire.ntf.device_token import parse_device_token, web_push_token
from weir.wire.ntf.types import InvalidReason


@pytest.fixture
def process(tmp_path: Path) -> Iterator[dict[str, str]]:
    command = [sys.executable, "-m", "weir.bench.standins", "--directory", str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        yield json.loads(running.stdout.readline())
        running.terminate()


def _ask(url: str, ca: str, value: object = None) -> Any:
    data = None if value is None else json.dumps(value).encode()
    with urllib.request.urlopen(url, data, context=ssl.create_default_context(cafile=ca), timeout=10) as response:
        text = response.read()
        return json.loads(text) if text else None


async def test_pushes_through_the_process(process: dict[str, str]) -> None:

    name, _, port = process["apns"].partition(":")
    tokens = WebTokens(
        p256.load_key(Path(process["apns_key"])), key_id=process["apns_key_id"], team_id=process["apns_team_id"]
    )
    pool = Pool(ssl.create_default_context(cafile=process["ca"]), allow_local=True)
    apns = Apns(Client(pool, 5.0), Origin(name, int(port)), tokens, process["apns_topic"])
    control = f"https://{process['apns']}/standin"
    one = push(message())
    assert await apns.send(one) == Delivered()
    seen = await asyncio.to_thread(_ask, f"{control}/pushes", process["ca"])
    assert seen["count"] == 1
    assert opened(one.token, seen["pushes"][0]["plain"].encode()) == [message()]
    refusal = {"status": 410, "body": json.dumps({"reason": "Unregistered"})}
    program = {"target": one.token.device.token.decode(), "answers": [refusal]}
    await asyncio.to_thread(_ask, f"{control}/answers", process["ca"], program)
    assert await apns.send(one) == Invalid(InvalidReason.UNREGISTERED)
    assert await apns.send(one) == Delivered()
    await apns.close()


async def test_subscriptions_of_the_process(process: dict[str, str]) -> None:

    url = f"{process['web_push']}/standin/subscriptions"
    made = await asyncio.to_thread(_ask, url, process["ca"], {})
    device = parse_device_token(made["token"])
    assert device is not None
    token = web_push_token(device.token)
    assert token is not None
    assert token.origin == process["web_push"]
    assert token.path == f"/push/{made['target']}"
