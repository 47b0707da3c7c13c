"""Both stand-ins as a process: `python -m weir.bench.standins --directory DIR`.

Writes the certificate to trust (ca.pem) and Apple's key (apns.p8) into the directory and prints one line of JSON.
"""

import argparse
import asyncio
import json
from pathlib import Path

import uvloop

from weir.bench.standins.apns import Apns
from weir.bench.standins.authority import Authority
from weir.bench.standins.web_push import WebPush
from weir.crypto import p256

KEY_ID, TEAM_ID, TOPIC = "KEY4567890", "TEAM567890", "dev.weir.app"


async def serve(arguments: argparse.Namespace) -> None:
    directory: Path = arguments.directory
    directory.mkdir(parents=True, exist_ok=True)
    key_file = directory / "apns.p8"
    if not key_file.exists():
        p256.save_key(key_file, p256.generate())
    authority, record = Authority(), not arguments.forget
    key = p256.load_key(key_file).public_key()
    apns = Apns(authority, key=key, key_id=KEY_ID, team_id=TEAM_ID, topic=TOPIC, host=arguments.name, record=record)
    web_push = WebPush(authority, host=arguments.name, record=record)
    (directory / "ca.pem").write_bytes(authority.pem)
    await apns.start(arguments.host, arguments.apns_port)
    await web_push.start(arguments.host, arguments.web_push_port)
    line = {
        "apns": f"{arguments.name}:{apns.server.port}",
        "web_push": web_push.origin,
        "ca": str(directory / "ca.pem"),
        "apns_key": str(key_file),
        "apns_key_id": KEY_ID,
        "apns_team_id": TEAM_ID,
        "apns_topic": TOPIC,
    }
    print(json.dumps(line), flush=True)
    await asyncio.Event().wait()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m weir.bench.standins", description=__doc__)
    parser.add_argument("--directory", type=Path, required=True, help="where ca.pem and apns.p8 go")
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on")
    parser.add_argument("--name", default="localhost", help="host name in the certificate and in endpoints")
    parser.add_argument("--apns-port", type=int, default=0)
    parser.add_argument("--web-push-port", type=int, default=0)
    parser.add_argument("--forget", action="store_true", help="count pushes and keep none")
    uvloop.run(serve(parser.parse_args()))


if __name__ == "__main__":
    main()
