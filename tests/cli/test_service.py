"""`weir service` on a running router with real services."""

import asyncio
import base64
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.support.up import Up
from weir.cli.main import main
from weir.client.smp import SmpClient
from weir.crypto.certificates import make_self_signed
from weir.crypto.keys import generate
from weir.redis.settings import read_key
from weir.router.store.store import Store, StoreConfig
from weir.transport.client import ConnectError
from weir.transport.smp import ServiceCredentials
from weir.wire.smp.commands import NEW, SEND, ServiceRole
from weir.wire.smp.ids_hash import EMPTY, of_ids
from weir.wire.smp.replies import ALLS, IDS, OK


@dataclass
class Cli:
    up: Up
    capsys: pytest.CaptureFixture[str]

    async def __call__(self, *words: str) -> tuple[int, str]:
        code = await asyncio.to_thread(main, ["service", "--home", str(self.up.home), *words])
        captured = self.capsys.readouterr()
        return code, captured.out + captured.err

    async def json(self, *words: str) -> Any:
        code, text = await self("--json", *words)
        assert code == 0, text
        return json.loads(text)


@pytest.fixture
def cli(up: Up, capsys: pytest.CaptureFixture[str]) -> Cli:
    return Cli(up, capsys)


def credentials() -> ServiceCredentials:
    return ServiceCredentials.self_signed(ServiceRole.MESSAGING, make_self_signed())


def text(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


async def new_queues(client: SmpClient, count: int) -> list[IDS]:
    queues = []
    for _ in range(count):
        key = generate("x25519")
        reply = await client.send(NEW(key.spki, generate("x25519").public), b"", key)
        assert isinstance(reply, IDS)
        queues.append(reply)
    return queues


async def test_list_show_and_drift(up: Up, cli: Cli) -> None:
    service = credentials()
    async with await SmpClient.connect(up.address, service=service) as client:
        queues = await new_queues(client, 3)
        assert client.service_id is not None
        name = text(client.service_id)
    async with await SmpClient.connect(up.address) as sender:
        assert await sender.send(SEND(False, b"hello"), queues[0].snd_id) == OK()
    shown = await cli.json("show", "--", name)
    assert (shown["role"], shown["queues"], shown["with_messages"]) == ("messaging", 3, 1)
    assert shown["ids_hash"] == of_ids([queue.rcv_id for queue in queues]).hex()
    assert shown["certificates"] == [{"fingerprint": text(service.cert_hash), "until": None}]
    assert shown["connected"] is False

    async with await SmpClient.connect(up.address, service=service) as client:
        await client.subscribe_service(ServiceRole.MESSAGING, 2, EMPTY)
        while (await client.events.get()).reply != ALLS():
            pass
        # Folds tell their progress when they are done; give the last word a moment to arrive.
        async with asyncio.timeout(10):
            while not (shown := await cli.json("show", "--", text(service.cert_hash)))["fold"]["done"]:
                await asyncio.sleep(0.05)
        assert shown["connected"] is True and shown["edge"]
        assert shown["fold"]["ready"] == shown["fold"]["delivered"] == 1
        assert shown["drift"] == {"ok": 0, "more": 1, "fewer": 0, "diff": 0}
        _, table = await cli("list")
        (row,) = [line for line in table.splitlines() if line.startswith(name)]
        assert row.split()[:4] == [name, "messaging", "3", "1"] and "since 20" in row and "done, 1 delivered" in row
        _, page = await cli("show", "--", name)
        assert f"certificate   {text(service.cert_hash)}\n" in page and "queues        3, idsHash" in page
    drift = await cli.json("drift")
    assert {"service": name, "ok": 0, "more": 1, "fewer": 0, "diff": 0} in drift
    assert (await cli("drift", "--", name))[1] == f"{name}  0 ok, 1 more, 0 fewer, 0 diff\n"


async def test_a_label(up: Up, cli: Cli) -> None:
    async with await SmpClient.connect(up.address, service=credentials()) as client:
        assert client.service_id is not None
        name = text(client.service_id)
        assert await cli("label", "--", name, "Bücher & more") == (0, f"{name}: labelled Bücher & more\n")
        assert (await cli.json("show", "--", name))["label"] == "Bücher & more"
        assert "label         Bücher & more\n" in (await cli("show", "--", name))[1]
        [row] = [line for line in (await cli("list"))[1].splitlines() if line.startswith(name)]
        assert row.endswith("Bücher & more")
        assert await cli.json("label", "--", name, "") == {"service": name, "label": ""}
        assert (await cli.json("show", "--", name))["label"] == ""


async def test_rotate_at_once_and_with_an_overlap(up: Up, cli: Cli) -> None:
    old, new, newest = credentials(), credentials(), credentials()
    async with await SmpClient.connect(up.address, service=old) as client:
        await new_queues(client, 2)
        service_id = client.service_id
    rotate = ("rotate", f"--from={text(old.cert_hash)}", f"--to={text(new.cert_hash)}")
    code, said = await cli(*rotate, "--overlap", "1h")
    assert code == 0 and "the old one works for another 1h" in said
    for identity in (old, new):
        async with await SmpClient.connect(up.address, service=identity) as client:
            assert client.service_id == service_id
            assert (await client.subscribe_service(ServiceRole.MESSAGING, 2, EMPTY)).count == 2
    assert (await cli("rotate", f"--from={text(new.cert_hash)}", f"--to={text(newest.cert_hash)}"))[0] == 0
    async with await SmpClient.connect(up.address, service=newest) as client:
        assert client.service_id == service_id
    with pytest.raises(ConnectError, match="BAD_SERVICE"):
        await SmpClient.connect(up.address, service=new)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("show", "nobody"), "no service nobody"),
        (("label", "nobody", "x"), "no service nobody"),
        (("label", "nobody", "other"), "a label is printable text of at most 64 characters"),
        (("label", "nobody", "two\nlines"), "a label is printable text of at most 64 characters"),
        (("rotate", "--from", "AAAA", "--to", "BBBB"), "AAAA: a fingerprint is 32 bytes as base64url"),
        (("rotate", "--from", "A" * 43, "--to", "B" * 42 + "A"), "no service has the old certificate"),
        (("rotate", "--from", "A" * 43, "--to", "A" * 43, "--overlap", "soon"), "--overlap: expected a time"),
        (
            ("rotate", "--from", "A" * 43, "--to", "A" * 43, "--overlap", "99999999d"),
            "--overlap: expected at most 3650d",
        ),
    ],
)
async def test_refusals_are_one_line(cli: Cli, words: tuple[str, ...], says: str) -> None:
    code, said = await cli(*words)
    assert code == 1 and said.count("\n") == 1 and says in said


async def test_forget(up: Up, cli: Cli) -> None:
    service = credentials()
    async with await SmpClient.connect(up.address, service=service) as client:
        await new_queues(client, 2)
        assert client.service_id is not None
        name = text(client.service_id)
    assert await cli("forget", "--yes", "--", name) == (0, f"{name}: forgotten, 2 queues belong to no service now\n")
    assert (await cli("show", "--", name))[0] == 1
    async with await SmpClient.connect(up.address, service=service) as client:
        assert client.service_id is not None
        assert text(client.service_id) != name


async def test_a_router_with_a_prefix(up: Up, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Another router on the same Redis: its services, and not those of the one without a prefix."""
    key = up.run["placement_key"]
    config, url = tmp_path / "weir.toml", up.run["redis"]["url"]
    config.write_text(f'[redis]\nurl = "{url}"\nprefix = "other"\nplacement_key = "{key}"\n')
    service_id = os.urandom(24)
    settings = StoreConfig(url=url, placement_key=read_key(Path(key), "a placement key"), prefix="other")
    store = await Store.open(settings, edge=False)
    try:
        await store.registry.ensure_service(os.urandom(32), ServiceRole.MESSAGING, service_id)
    finally:
        await store.close()
    assert await asyncio.to_thread(main, ["service", "list", "--config", str(config), "--json"]) == 0
    assert [each["service"] for each in json.loads(capsys.readouterr().out)] == [text(service_id)]


def test_a_home_where_nothing_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["service", "list", "--home", str(tmp_path)]) == 1
    assert capsys.readouterr().err == f"weir service: {tmp_path}: no `weir up` runs there\n"
