"""Nothing leaks: a busy session on two edges at debug logging with everything traced, then a search through all of it.

What is searched for is every id, key, secret and body of the session in every spelling a program would use, and the
clients' addresses; what is searched through is every log line, span, metric, page and rollup, and Redis' own log.
"""

import asyncio
import base64
import gzip
from pathlib import Path

import pytest

from tests.router.fleet import Peer
from tests.support.collector import Collector, collector
from tests.support.leaks import Secrets, pages
from tests.support.ports import free_port
from tests.support.rollups import Sums, raw_records, until_records
from tests.support.up import Up, weir_up
from weir.client.smp import SmpClient
from weir.crypto.certificates import make_self_signed
from weir.crypto.keys import generate
from weir.transport.smp import ServiceCredentials
from weir.wire.smp import commands as cmd
from weir.wire.smp.commands import ContactReq, LinkData, MessagingReq, ServiceRole
from weir.wire.smp.ids_hash import EMPTY
from weir.wire.smp.replies import ALLS, IDS, NID, NMSG, OK

BODY = b"a message that nobody else may read, 0123456789"
ADMIN = "administrators-word"
SETTINGS = f"""
[auth]
create_password = "creators-word"
control_port_admin_password = "{ADMIN}"

[telemetry]
log_level = "debug"
trace_sessions = "all"

[rollups]
interval = "1s"
"""


async def session(up: Up, secrets: Secrets, control_port: int) -> None:
    """Most of what clients do, on both edges: connections are spread over them."""
    clients = [await SmpClient.connect(up.address) for _ in range(8)]
    service = ServiceCredentials.self_signed(ServiceRole.MESSAGING, make_self_signed())
    secrets.add("service fingerprint", service.cert_hash)
    recipient, sender, notifier = Peer(clients[0]), Peer(clients[1]), Peer(clients[2])
    for client in clients:
        secrets.add_client(client)
    auth = b"creators-word"
    for key_type in ("x25519", "ed25519", "ed448"):
        queue = await recipient.new(key_type, secure=True, basic_auth=auth)  # type: ignore[arg-type]
        for name, raw in (("rcv", queue.rcv_id), ("snd", queue.snd_id), ("dh", queue.secret)):
            secrets.add(f"{key_type} {name}", raw)
        secrets.add(f"{key_type} recipient's key", queue.rcv_key.public)
        assert queue.snd_key is not None
        secrets.add(f"{key_type} sender's key", queue.snd_key.public)
        ntf_key = generate("ed25519")
        reply = await recipient.do(cmd.NKEY(ntf_key.spki, generate("x25519").public), queue.rcv_id, queue.rcv_key)
        assert isinstance(reply, NID)
        secrets.add(f"{key_type} notifier id", reply.ntf_id)
        await notifier.do(cmd.NSUB(), reply.ntf_id, ntf_key)
        assert await sender.send(queue, BODY, True) == OK()
        msg_id, _ = await recipient.msg(queue)
        secrets.add(f"{key_type} message id", msg_id)
        assert await recipient.ack(queue, msg_id) == OK()
        assert isinstance((await notifier.event()).reply, NMSG)
        await sender.do(cmd.SEND(False, BODY), queue.snd_id, generate("x25519"))  # AUTH
        await sender.do(cmd.SEND(False, b"x" * 16100), queue.snd_id, queue.snd_key)  # LARGE_MSG
        await recipient.do(cmd.QUE(), queue.rcv_id, queue.rcv_key)
        await Peer(clients[3]).sub(queue)  # END for the first
        await recipient.event()
        await recipient.do(cmd.OFF(), queue.rcv_id, queue.rcv_key)
        await sender.send(queue, BODY)
    link_id = generate("ed25519").public[:24]
    secrets.add("link id", link_id)
    contact = await recipient.new(request=ContactReq(), basic_auth=auth)
    await recipient.do(cmd.LSET(link_id, LinkData(BODY, BODY)), contact.rcv_id, contact.rcv_key)
    await sender.do(cmd.LGET(), link_id)
    owner = Peer(await SmpClient.connect(up.address, service=service))
    assert owner.smp.service_id is not None
    secrets.add("service id", owner.smp.service_id)
    queues = [await owner.new(basic_auth=auth, request=MessagingReq()) for _ in range(3)]
    await owner.close()
    for queue in queues:
        secrets.add("service queue", queue.rcv_id)
        await sender.send(queue, BODY)
    owner = Peer(await SmpClient.connect(up.address, service=service))
    await owner.smp.subscribe_service(ServiceRole.MESSAGING, 5, EMPTY)
    while (await owner.event()).reply != ALLS():
        pass
    clients[4].connection.send_raw(bytes(16384))  # no block at all
    clients[5].connection.send_contents([b"\x01\x00\x05nope!"])
    await recipient.do(cmd.DEL(), queues[0].rcv_id, queues[0].rcv_key)
    await control(control_port, contact.ids)
    for client in (*clients, owner.smp):
        client.connection.abort()


async def control(port: int, queue: IDS) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    name = base64.urlsafe_b64encode(queue.snd_id).decode()
    lines = ("auth wrong-word", f"auth {ADMIN}", f"status {name}", f"block {name} reason=spam", "nonsense", "quit", "")
    writer.write("\n".join(lines).encode())
    await reader.read()
    writer.close()


@pytest.mark.timeout(120)
async def test_nothing_leaks(tmp_path: Path) -> None:
    home, secrets = tmp_path / "home", Secrets()
    home.mkdir()
    control_port = free_port()
    (home / "weir.toml").write_text(f"{SETTINGS}\n[control]\nport = {control_port}\n")
    async with collector() as collected:
        environ = {"WEIR_TELEMETRY_TRACES": collected.url, "WEIR_TELEMETRY_LOG_LEVEL": "debug"}
        with weir_up(home, environ=environ) as up:
            address = up.address
            await session(up, secrets, control_port)
            seen = await asyncio.to_thread(pages, up.http, up.run["metrics"])
            seen["rollups"] = await rollups(up.run["redis"]["url"])
            _, printed = await asyncio.to_thread(up.stop)
        # The address with its password is printed once, for the operator; everything after that is log lines.
        seen |= {"logs": printed.replace(address, "", 1).encode(), "spans": spans(collected)}
    seen["redis.log"] = (home / "redis" / "redis.log").read_bytes()
    secrets.add("body", BODY)
    secrets.add("administrator's password", ADMIN.encode())
    secrets.add("creators' password", b"creators-word")
    secrets.add("placement key", bytes.fromhex((home / "placement.key").read_text()))
    assert len(seen["spans"]) > 1000 and "control port: block" in printed
    assert secrets.leaks(seen) == set()


async def rollups(url: str) -> bytes:
    """All records, as soon as they have what the session did last."""
    await until_records(url, lambda found: "DEL.OK" in Sums(found).commands and any(r.services for r in found))
    return b"".join(map(gzip.decompress, raw_records(url)))


def spans(collected: Collector) -> bytes:
    assert {"SEND", "MSG", "ACK", "SUBS", "ALLS"} <= {span.name for span in collected.spans}
    return b"".join(span.raw for span in collected.spans)


@pytest.mark.parametrize(
    "line",
    [
        b"queue 000102030405060708090a0b0c0d0e0f1011121314151617 is gone",
        b"fetch AAECAwQFBgcICQoLDA0ODxAREhMUFRYX",
        b"id=b'\\x00\\x01\\x02\\x03\\x04\\x05\\x06\\x07\\x08\\t\\n\\x0b\\x0c\\r\\x0e\\x0f\\x10\\x11\\x12\\x13\\x14\\x15\\x16\\x17'",
        b"raw " + bytes(range(24)),
    ],
)
def test_the_search_would_find_it(line: bytes) -> None:
    secrets = Secrets()
    secrets.add("id", bytes(range(24)))
    assert [name for name, spelling in secrets.spellings() if spelling in line]
