"""A router that keeps queues in a dict: just enough for the generator, and a measure of the transport alone.

`python -m tests.bench.memory_router DIRECTORY` prints the address of a new one, and ends with its standard input.
"""

import asyncio
import os
import sys
from collections import deque
from dataclasses import dataclass, field
from pathlib import Path

import uvloop

from weir.crypto.authenticator import verify, verify_signature
from weir.crypto.identity import init_identity
from weir.crypto.keys import dh, generate, parse_spki
from weir.transport.server import TransportConfig, bind, serve
from weir.transport.smp import SMP, ServiceOffer, SmpConnection
from weir.wire.address import SmpAddress
from weir.wire.errors import CommandError, Simple
from weir.wire.smp.codec import encode_reply
from weir.wire.smp.commands import ACK, DEL, KEY, NEW, PING, SEND, SUB
from weir.wire.smp.message import encrypt_message
from weir.wire.smp.replies import ERR, IDS, OK, PONG, SOK, Reply
from weir.wire.smp.transmission import (
    ClientTransmission,
    TransmissionError,
    decode_block,
    encode_msg,
    encode_server,
    pack_forward,
)


@dataclass(eq=False)
class Queue:
    rcv_id: bytes
    snd_id: bytes
    rcv_key: bytes
    secret: bytes
    snd_key: bytes | None = None
    owner: "Client | None" = None
    messages: deque[tuple[bytes, bytes]] = field(default_factory=deque)


class Client:
    def __init__(self, queues: dict[bytes, Queue], connection: SmpConnection) -> None:
        self.queues = queues
        self.connection = connection
        self.secrets: dict[bytes, bytes] = {}
        self.outgoing: list[bytes] = []

    def on_blocks(self, blocks: list[bytes]) -> None:
        for block in blocks:
            self.on_block(self.connection.open(block))

    def on_block(self, content: bytes) -> None:
        session = self.connection.session
        touched = {self}
        for one in decode_block(session, content):
            if isinstance(one, TransmissionError):
                reply: Reply = ERR(one.error)
            else:
                reply = self.answer(one, touched)
            entity = b"" if isinstance(reply, PONG) else one.entity_id
            self.outgoing.insert(0, encode_server(session, one.corr_id, entity, encode_reply(session.version, reply)))
        for client in touched:
            outgoing, client.outgoing = client.outgoing, []
            client.connection.send_contents(pack_forward(outgoing))

    def answer(self, one: ClientTransmission, touched: set["Client"]) -> Reply:
        command = one.command
        if isinstance(command, PING):
            return PONG()
        if isinstance(command, NEW):
            return self.new(command)
        queue = self.queues.get(one.entity_id)
        key = queue and (queue.snd_key if isinstance(command, SEND) else queue.rcv_key)
        if queue is None or (key and not self.verified(one, key)):
            return ERR(Simple.AUTH)
        if isinstance(command, SEND):
            msg_id = os.urandom(24)
            queue.messages.append((msg_id, encrypt_message(queue.secret, msg_id, 0, False, command.body)))
            if len(queue.messages) == 1:
                self.deliver(queue, touched)
            return OK()
        if isinstance(command, ACK):
            queue.messages.popleft()
            self.deliver(queue, touched)
            return OK()
        if isinstance(command, SUB):
            queue.owner = self
            self.deliver(queue, touched)
            return SOK()
        if isinstance(command, KEY):
            queue.snd_key = command.key
            return OK()
        if isinstance(command, DEL):
            del self.queues[queue.rcv_id], self.queues[queue.snd_id]
            return OK()
        return ERR(CommandError.UNKNOWN)

    def new(self, command: NEW) -> IDS:
        own = generate("x25519")
        queue = Queue(os.urandom(24), os.urandom(24), command.rcv_auth_key, dh(command.rcv_dh_key, own.private))
        queue.owner = self if command.subscribe else None
        self.queues[queue.rcv_id] = self.queues[queue.snd_id] = queue
        return IDS(queue.rcv_id, queue.snd_id, own.public)

    def deliver(self, queue: Queue, touched: set["Client"]) -> None:
        owner = queue.owner
        if owner is not None and queue.messages:
            owner.outgoing.append(encode_msg(owner.connection.session, b"", queue.rcv_id, *queue.messages[0]))
            touched.add(owner)

    def verified(self, one: ClientTransmission, spki: bytes) -> bool:
        parsed = parse_spki(spki)
        assert parsed is not None
        if parsed[0] != "x25519":
            return verify_signature(parsed[0], parsed[1], one.auth, one.authorized)
        secret = self.secrets.get(spki)
        if secret is None:
            secret = self.secrets[spki] = dh(parsed[1], self.connection.session_key)
        return verify(secret, one.corr_id, one.auth, one.authorized)

    def on_writable(self) -> None:
        pass

    def on_closed(self) -> None:
        for queue in self.queues.values():
            if queue.owner is self:
                queue.owner = None


async def main(directory: Path) -> None:
    identity = init_identity(directory / "identity", "localhost", "ed25519")
    queues: dict[bytes, Queue] = {}

    async def no_services(_offer: ServiceOffer) -> bytes:
        return bytes(24)

    listener = await serve(
        SMP,
        TransportConfig(),
        SMP.identity(directory / "identity"),
        lambda connection: Client(queues, connection),
        no_services,
        socks=[bind("127.0.0.1", 0)],
    )
    print(SmpAddress(identity.fingerprint, ("127.0.0.1",), listener.ports[0]), flush=True)
    await asyncio.to_thread(sys.stdin.read)
    await listener.close()


if __name__ == "__main__":
    uvloop.run(main(Path(sys.argv[1])))
