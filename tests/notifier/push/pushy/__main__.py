"""Push through Pushy's server, in a network namespace of its own, because the server listens on all interfaces.

    python -m tests.notifier.push.pushy CLASSPATH DIRECTORY

Prints one JSON object: what became of a push to each kind of device token, and of many pushes at once.
"""

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import uvloop
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from tests.faults.network import open_run
from tests.notifier.push.pushes import message, push, token
from weir.bench.standins.authority import Authority
from weir.crypto import p256
from weir.notifier.push.apns import Apns, WebTokens
from weir.notifier.push.http.client import Client
from weir.notifier.push.http.exchange import Origin
from weir.notifier.push.http.pool import Pool
from weir.wire.ntf.types import DeviceToken, PushProvider

PORT = 8443
STREAMS = 30
PUSHES = 1000


def provider(authority: Authority, key: p256.PrivateKey) -> Apns:
    tokens = WebTokens(key, key_id="KEY4567890", team_id="TEAM567890")
    client = Client(Pool(authority.client_context(), allow_local=True), 10.0)
    return Apns(client, Origin("localhost", PORT), tokens, "dev.weir.app")


async def outcome(apns: Apns, device: str) -> str:
    device_token = DeviceToken(PushProvider.APNS_PROD, device.encode())
    return repr(await apns.send(push(message(), of=token(device_token))))


async def run(classpath: str, directory: Path) -> dict[str, Any]:
    authority, key = Authority(), p256.generate()
    certificate, private = authority.server_files(directory)
    team = directory / "team.pem"
    team.write_bytes(key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))
    script = Path(__file__).with_name("server.groovy")
    server = await asyncio.create_subprocess_exec(
        *("java", "-cp", classpath, "groovy.ui.GroovyMain", script, str(PORT), str(STREAMS)),
        *(certificate, private, team),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=sys.stderr,
    )
    assert server.stdout is not None
    assert (await server.stdout.readline()).strip() == b"ready"
    apns, wrong = provider(authority, key), provider(authority, p256.generate())
    try:
        outcomes = {prefix: await outcome(apns, prefix + "ab" * 31) for prefix in ("00", "01", "02", "03", "04", "05")}
        outcomes["06"] = await outcome(apns, "06" + "ab" * 31)
        outcomes["07"] = await outcome(apns, "07" + "ab" * 31)
        outcomes["wrong key"] = await outcome(wrong, "00" * 32)
        many = await asyncio.gather(*(outcome(apns, f"{n + 0x10000000:064x}") for n in range(PUSHES)))
        return {"outcomes": outcomes, "many": sorted(set(many)), "connections": apns.numbers()["connections"]}
    finally:
        await apns.close()
        await wrong.close()
        server.kill()
        await server.wait()


if __name__ == "__main__":
    open_run()
    print(json.dumps(uvloop.run(run(sys.argv[1], Path(sys.argv[2])))))
