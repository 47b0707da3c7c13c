"""python -m tests.cluster.service_client ADDRESS DIRECTORY new|subs: a receive service that is no pod.

DIRECTORY holds tls.crt and tls.key. `new` makes a queue of the service; ids.json keeps which there are. `subs` sends
SUBS and stays connected until its standard input ends. Each prints one line: the ServiceId, and what SOKS told.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

from weir.client.smp import SmpClient
from weir.crypto.keys import generate
from weir.crypto.pem import load_certificates, load_key
from weir.transport.client import ConnectError
from weir.transport.smp import ServiceCredentials
from weir.wire.address import SmpAddress
from weir.wire.smp import ids_hash
from weir.wire.smp.commands import NEW, SUBS, MessagingReq, ServiceRole
from weir.wire.smp.replies import IDS, SOKS


async def main(text: str, directory: Path, verb: str) -> None:
    address = SmpAddress.parse(text)
    assert address is not None
    chain = load_certificates(directory / "tls.crt")
    credentials = ServiceCredentials(ServiceRole.MESSAGING, chain, load_key(directory / "tls.key"))
    try:
        client = await SmpClient.connect(address, service=credentials)
    except ConnectError as error:
        print("refused", error.error, flush=True)
        return
    async with client:
        service = client.connection.service
        assert service is not None
        kept = directory.parent / "ids.json"
        ids = [bytes.fromhex(one) for one in (json.loads(kept.read_text()) if kept.exists() else [])]
        if verb == "new":
            key, dh_key = generate("x25519"), generate("x25519")
            made = await client.send(NEW(key.spki, dh_key.public, None, True, MessagingReq()), b"", key)
            assert isinstance(made, IDS), made
            kept.write_text(json.dumps([one.hex() for one in (*ids, made.rcv_id)]))
            print(service.service_id.hex(), flush=True)
            return
        command = SUBS(len(ids), ids_hash.of_ids(ids))
        told = await client.send(command, service.service_id, service.key_pair)
        assert isinstance(told, SOKS), told
        exact = told == SOKS(len(ids), ids_hash.of_ids(ids))
        print(service.service_id.hex(), told.count, "exact" if exact else "drift", flush=True)
        await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], Path(sys.argv[2]), sys.argv[3]))
