"""The pods that the operator asks for, as processes.

Real edges start from the files and variables that the kubelet would give them. Clients reach them at the address in the
status, and the operator reads their numbers.
"""

from __future__ import annotations

import asyncio
import base64
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.operator.world import Town
from tests.support.ports import free_port
from tests.support.redis import RedisServer
from weir.client.ntf import NtfClient
from weir.client.smp import SmpClient
from weir.crypto import p256
from weir_operator.kinds import names
from weir_operator.kinds.registry import ROUTER_KINDS
from weir_operator.kinds.routers.observer import read_numbers
from weir_operator.kube.objects import Manifest

PORTS = {names.SMP_ROUTER: names.SMP_PORT, names.NTF_ROUTER: names.NTF_TARGET_PORT}
CLIENTS: dict[str, Any] = {names.SMP_ROUTER: SmpClient, names.NTF_ROUTER: NtfClient}


class Pod:
    """One container, with its directories below `root` and its ports replaced by free ones."""

    def __init__(self, town: Town, root: Path) -> None:
        self.town, self.root = town, root
        self.public, self.http, self.control = free_port(), free_port(), free_port()
        spec = town.api.objects["Deployment", "r"]["spec"]["template"]["spec"]
        (self.container,) = spec["containers"]
        self._volumes = {volume["name"]: volume for volume in spec["volumes"]}
        self._process: asyncio.subprocess.Process | None = None

    def _object(self, kind: str, name: str) -> Manifest:
        return self.town.api.objects[kind, name]

    def _text(self, text: str) -> str:
        return text.replace("/etc/weir", str(self.root / "etc"))

    def write_files(self) -> None:
        """As the kubelet does, also when a Secret has changed."""
        for mount in self.container["volumeMounts"]:
            volume = self._volumes[mount["name"]]
            directory = Path(self._text(mount["mountPath"]))
            if "configMap" in volume:
                data = self._object("ConfigMap", volume["configMap"]["name"])["data"]
                files = {name: self._with_free_ports(self._text(text)).encode() for name, text in data.items()}
            elif "secret" in volume:
                data = self._object("Secret", volume["secret"]["secretName"])["data"]
                files = {name: base64.b64decode(value) for name, value in data.items()}
            else:
                continue
            directory.mkdir(parents=True, exist_ok=True)
            for name, content in files.items():
                new = directory / f".{name}"
                new.write_bytes(content)
                new.replace(directory / name)

    def _with_free_ports(self, text: str) -> str:
        own = PORTS[self.town.key.kind]
        for old, new in (
            (f"ports = [{own}]", f"ports = [{self.public}]"),
            (f"port = {names.HTTP_PORT}", f"port = {self.http}"),
            (f"port = {names.CONTROL_PORT}", f"port = {self.control}"),
        ):
            assert old in text
            text = text.replace(old, new)
        return text

    def _environment(self) -> dict[str, str]:
        found = {}
        for one in self.container["env"]:
            if "value" in one:
                found[one["name"]] = self._text(one["value"])
                continue
            reference = one["valueFrom"]["secretKeyRef"]
            found[one["name"]] = base64.b64decode(
                self._object("Secret", reference["name"])["data"][reference["key"]]
            ).decode()
        return found

    @property
    def page(self) -> str:
        return f"http://127.0.0.1:{self.http}"

    @asynccontextmanager
    async def running(self) -> AsyncIterator[aiohttp.ClientSession]:
        """Until the readiness probe passes. SIGTERM ends the process in order."""
        self.write_files()
        weir, *words = self.container["command"]
        assert weir == "weir"
        log = self.root / "log"
        with log.open("wb") as file:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "weir.cli.main", *map(self._text, words)),
                env={**os.environ, **self._environment()},
                stdout=file,
                stderr=file,
            )
        try:
            async with aiohttp.ClientSession() as session:
                path = self.container["readinessProbe"]["httpGet"]["path"]
                while not await _answers(session, f"{self.page}{path}"):
                    assert process.returncode is None, log.read_text()
                    await asyncio.sleep(0.05)
                yield session
        finally:
            if process.returncode is None:
                process.send_signal(signal.SIGTERM)
        assert await process.wait() == 0, log.read_text()


async def _answers(session: aiohttp.ClientSession, url: str) -> bool:
    try:
        async with session.get(url) as response:
            return response.status == 200
    except aiohttp.ClientError:
        return False


async def started(kind: str, root: Path, redis: RedisServer, **spec: Any) -> Pod:
    """A router whose Redis is this one, and its pod."""
    town = Town(
        kind,
        hosts=["127.0.0.1"],
        redis={"external": {"url": redis.url}, "prefix": f"t{os.urandom(6).hex()}"},
        rollout={"gracePeriodSeconds": 5, "drainRate": 1000},
        **spec,
    )
    await town.reconcile()
    return Pod(town, root)


@pytest.mark.parametrize("kind", list(PORTS))
async def test_an_edge_starts_from_what_the_operator_makes(
    kind: str, tmp_path: Path, redis_server: RedisServer
) -> None:
    pod = await started(kind, tmp_path, redis_server, control={})
    async with pod.running() as session:
        # The address in the status, at the port of this process.
        head, _, query = pod.town.status["address"].partition("?")
        address = f"{head.rpartition('@')[0]}@127.0.0.1:{pod.public}" + (f"?{query}" if query else "")
        async with await CLIENTS[kind].connect(address) as client:
            await client.ping()
            numbers = await read_numbers(session, f"{pod.page}/status.json", ROUTER_KINDS[kind].numbers)
        assert numbers is not None
        assert numbers["connections"] == 1
        fields = ROUTER_KINDS[kind].counts(numbers)
        assert set(fields) == set(ROUTER_KINDS[kind].counted)


async def test_the_page_shows_the_address_of_the_status(tmp_path: Path, redis_server: RedisServer) -> None:
    """The edge finds the key of Web Push in its file, the operator in its Secret."""
    pod = await started(names.NTF_ROUTER, tmp_path, redis_server)
    async with pod.running() as session, session.get(f"{pod.page}/") as response:
        text = await response.text()
    assert pod.town.status["address"] in text


async def test_an_edge_starts_with_keys_of_all_push_services(tmp_path: Path, redis_server: RedisServer) -> None:
    apns = {"secretName": "apple", "keyId": "K" * 10, "teamId": "T" * 10, "topic": "org.example.app"}
    pod = await started(names.NTF_ROUTER, tmp_path, redis_server, push={"apns": apns})
    key = base64.b64encode(p256.keys_to_pem(p256.generate())).decode()
    pod.town.api.put({"kind": "Secret", "metadata": {"name": "apple"}, "data": {"authkey.p8": key}})
    async with pod.running() as session, session.get(f"{pod.page}/metrics") as response:
        assert 'provider="apns_prod"' in await response.text()
