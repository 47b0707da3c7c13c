"""One client that sends valid commands, mutated in every layer, and checks what the router answers.

A command is mutated before it is authorised (its parser and its handler see the mutation), or the finished transmission
is, or the block around several transmissions. What the router must do does not depend on the mutation: it answers every
transmission of a block exactly once, with the correlation id that stands there, never with INTERNAL, and with nothing
that a client of this version cannot read. It does not end the connection.
"""

from __future__ import annotations

import asyncio
import os
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from hashlib import sha3_384

from tests.fuzz.mutation import mutate
from weir.client.smp import SmpClient
from weir.crypto.authenticator import sign
from weir.crypto.certificates import certificate_key
from weir.crypto.keys import KeyPair, KeyType, dh, generate
from weir.crypto.session_key import verify_session_key
from weir.wire.address import ServerHost
from weir.wire.errors import Simple
from weir.wire.smp import commands as cmd
from weir.wire.smp.codec import encode_command
from weir.wire.smp.commands import DECLARATIONS, Command, ContactReq, LinkData, MessagingReq
from weir.wire.smp.forward import FwdTransmission, seal_forward, seal_transmission
from weir.wire.smp.replies import ERR, IDS, MSG, NID, OK, PKEY
from weir.wire.smp.session import Session
from weir.wire.smp.transmission import ServerTransmission, decode_block, encode_client, fits, for_auth
from weir.wire.versions import AUTH_CMDS, SHORT_LINKS, max_message_length

ANSWERS = 30.0  # seconds in which a block must be answered
_LARGEST_CONTENT = 16365  # bytes that a block can carry, encrypted or not
_DOUBLE = (cmd.NEW, cmd.SUB, cmd.NSUB)  # a service signs these too
_FREQUENT = (cmd.SEND, cmd.SUB, cmd.ACK)


class Broken(AssertionError):
    """The router broke a rule."""


@dataclass
class Queue:
    rcv_id: bytes
    snd_id: bytes
    rcv_key: KeyPair
    snd_key: KeyPair | None = None
    ntf_id: bytes = b""
    ntf_key: KeyPair | None = None
    link_id: bytes = b""
    msg_id: bytes = b""


@dataclass
class Sent:
    """A command as it leaves: what is authorised by which key, under which correlation id."""

    command: bytes
    entity_id: bytes = b""
    key: KeyPair | None = None
    corr_id: bytes = field(default_factory=lambda: os.urandom(24))
    double: bool = False


class FuzzSession:
    def __init__(self, client: SmpClient, rng: random.Random, relay: ServerHost, foreign: list[Queue]) -> None:
        """`foreign` are queues of another client: their ids are known here, and their keys are not."""
        self.client = client
        self.version = client.session.version
        self.rng = rng
        self.relay = relay
        self.queues: list[Queue] = []
        self.last = b""
        self.answered = asyncio.Event()
        self.counts: Counter[str] = Counter()
        self._foreign = foreign
        self._expected: Counter[bytes] = Counter()
        self._new: dict[bytes, Callable[[object], None]] = {}
        self._relay_session: tuple[bytes, bytes] | None = None  # session id of a relay, and its X25519 key
        self._problem = ""
        client.on_event = self._on_transmission
        service = client.connection.service
        self._commands = [
            make
            for kind, make in self._makers().items()
            if DECLARATIONS[kind].first_version <= self.version and (service or kind not in (cmd.SUBS, cmd.NSUBS))
            for _ in range(4 if kind in _FREQUENT else 1)
        ]

    # The router's side.

    def _on_transmission(self, one: ServerTransmission) -> None:
        reply = one.reply
        is_answer = one.corr_id in self._expected and (one.corr_id or isinstance(reply, ERR))
        if isinstance(reply, ERR) and reply.error is Simple.INTERNAL:
            self._problem = "ERR INTERNAL"
        elif not isinstance(reply, ERR) and type(reply).__module__ != IDS.__module__:
            self._problem = f"an answer that version {self.version} cannot read: {type(reply).__name__}"
        elif one.corr_id and not is_answer:
            self._problem = f"an answer to nothing: {type(reply).__name__}"
        if isinstance(reply, MSG):
            for queue in self.queues:
                if queue.rcv_id == one.entity_id:
                    queue.msg_id = reply.msg_id
        if is_answer:
            error = getattr(reply, "error", None)
            self.counts[f"ERR {getattr(error, 'value', type(error).__name__)}" if error else type(reply).__name__] += 1
            self._expected[one.corr_id] -= 1
            if not self._expected[one.corr_id]:
                del self._expected[one.corr_id]
            if learn := self._new.pop(one.corr_id, None):
                learn(reply)
        if self._problem or not self._expected:
            self.answered.set()

    # The client's side.

    async def send_block(self) -> None:
        """Send one block and wait for all its answers."""
        rng = self.rng
        encoded: list[bytes] = []
        for _ in range(rng.choice((1, 1, 2, 3, 8, 30))):
            one = self._encode(self._make())
            if sum(map(len, encoded)) + len(one) + 1 > _LARGEST_CONTENT:
                break
            encoded.append(one)
        content = bytes((len(encoded),)) + b"".join(encoded)
        if rng.random() < 0.1:
            content = mutate(content, rng)[:_LARGEST_CONTENT]
        self.last = content
        # The decoder's own totality is fuzzed elsewhere; here it says which correlation ids the router reads.
        self._expected = Counter(one.corr_id for one in decode_block(self.client.session, content))
        self.counts["transmissions"] += self._expected.total()
        self._problem = ""
        self.answered.clear()
        self.client.connection.send_contents([content])
        closed = asyncio.ensure_future(self.client.closed.wait())
        answered = asyncio.ensure_future(self.answered.wait())
        done, _ = await asyncio.wait((closed, answered), timeout=ANSWERS, return_when=asyncio.FIRST_COMPLETED)
        for task in (closed, answered):
            task.cancel()
        if self._problem:
            raise Broken(self._problem)
        if closed in done:
            raise Broken("the router closed the connection")
        if answered not in done:
            raise Broken(f"{self._expected.total()} transmissions without an answer")
        self._new.clear()

    def _encode(self, sent: Sent) -> bytes:
        rng, client, session = self.rng, self.client, self.client.session
        command = mutate(sent.command, rng) if rng.random() < 0.2 else sent.command
        authorized, body = for_auth(session, sent.corr_id, sent.entity_id, command)
        auth, service_sig = b"", None
        if sent.key is not None:
            service = client.connection.service
            if service is not None and sent.double and rng.random() < 0.9:
                service_sig = sign("ed25519", service.key, authorized)
                authorized = service.cert_hash + authorized
            auth = client._authorize(sent.key, sent.corr_id, authorized)
        encoded = encode_client(session, body, auth, service_sig)
        if rng.random() < 0.1:
            changed = mutate(encoded[2:], rng)
            encoded = min(len(changed), 65535).to_bytes(2, "big") + changed
        return encoded if fits(encoded) else self._encode(Sent(b"PING"))

    def _make(self) -> Sent:
        rng = self.rng
        if not self.queues:
            return self._new_queue()
        return rng.choice(self._commands)()

    def _sent(self, command: Command, entity_id: bytes, key: KeyPair | None) -> Sent:
        rng = self.rng
        if rng.random() < 0.05:
            entity_id = rng.choice((b"", os.urandom(24), os.urandom(rng.randrange(40)), self._any().snd_id))
        if rng.random() < 0.05:
            key = rng.choice((None, self._key(), self._any().rcv_key))
        return Sent(encode_command(self.version, command), entity_id, key, double=isinstance(command, _DOUBLE))

    def _any(self) -> Queue:
        return self.rng.choice(self.queues + self._foreign)

    def _key(self) -> KeyPair:
        kinds: tuple[KeyType, ...] = (
            ("ed25519", "ed448") if self.version < AUTH_CMDS else ("x25519", "ed25519", "ed448")
        )
        return generate(self.rng.choice(kinds))

    # Commands with their keys.

    def _makers(self) -> dict[type, Callable[[], Sent]]:
        def of_recipient(make: Callable[[Queue], Command]) -> Callable[[], Sent]:
            def made() -> Sent:
                queue = self._any()
                return self._sent(make(queue), queue.rcv_id, queue.rcv_key)

            return made

        rng = self.rng
        return {
            cmd.NEW: self._new_queue,
            cmd.SUB: of_recipient(lambda _: cmd.SUB()),
            cmd.KEY: self._secure,
            cmd.RKEY: of_recipient(lambda _: cmd.RKEY(tuple(self._key().spki for _ in range(rng.randint(1, 3))))),
            cmd.LSET: of_recipient(lambda queue: cmd.LSET(queue.link_id or os.urandom(24), self._data())),
            cmd.LDEL: of_recipient(lambda _: cmd.LDEL()),
            cmd.NKEY: self._add_notifier,
            cmd.NDEL: of_recipient(lambda _: cmd.NDEL()),
            cmd.GET: of_recipient(lambda _: cmd.GET()),
            cmd.ACK: of_recipient(lambda queue: cmd.ACK(queue.msg_id or os.urandom(24))),
            cmd.OFF: of_recipient(lambda _: cmd.OFF()),
            cmd.DEL: self._delete,
            cmd.QUE: of_recipient(lambda _: cmd.QUE()),
            cmd.SKEY: self._secure_as_sender,
            cmd.SEND: self._send,
            cmd.PING: lambda: self._sent(cmd.PING(), b"", None),
            cmd.LKEY: self._read_link,
            cmd.LGET: lambda: self._sent(cmd.LGET(), self._any().link_id or os.urandom(24), None),
            cmd.PRXY: self._proxy,
            cmd.PFWD: self._forward,
            cmd.RFWD: self._forwarded,
            cmd.NSUB: self._subscribe_notifier,
            cmd.SUBS: self._subscribe_service,
            cmd.NSUBS: self._subscribe_service,
        }

    def _new_queue(self) -> Sent:
        rng, corr_id, key, request = self.rng, os.urandom(24), self._key(), None
        if self.version >= SHORT_LINKS and rng.random() < 0.7:
            snd_id, link_id = sha3_384(corr_id).digest()[:24], os.urandom(24)
            request = rng.choice(
                (
                    MessagingReq(),
                    ContactReq(),
                    MessagingReq((snd_id, self._data())),
                    ContactReq((link_id, (snd_id, self._data()))),
                )
            )
        credentials = cmd.NewNtfCreds(self._key().spki, generate("x25519").public) if rng.random() < 0.3 else None
        new = cmd.NEW(key.spki, generate("x25519").public, None, rng.random() < 0.7, request, credentials)

        def learn(reply: object) -> None:
            if isinstance(reply, IDS) and len(self.queues) < 12:
                self.queues.append(Queue(reply.rcv_id, reply.snd_id, key, link_id=reply.link_id or b""))

        self._new[corr_id] = learn
        return Sent(encode_command(self.version, new), b"", key, corr_id, double=True)

    def _data(self) -> LinkData:
        return LinkData(
            self.rng.randbytes(self.rng.choice((0, 10, 300))), self.rng.randbytes(self.rng.choice((0, 10, 900)))
        )

    def _secure(self) -> Sent:
        queue, key = self._any(), self._key()
        return self._secured(queue, key, self._sent(cmd.KEY(key.spki), queue.rcv_id, queue.rcv_key))

    def _secure_as_sender(self) -> Sent:
        queue, key = self._any(), self._key()
        return self._secured(queue, key, self._sent(cmd.SKEY(key.spki), queue.snd_id, key))

    def _secured(self, queue: Queue, key: KeyPair, sent: Sent) -> Sent:
        def learn(reply: object) -> None:
            if reply == OK():
                queue.snd_key = key

        self._new[sent.corr_id] = learn
        return sent

    def _send(self) -> Sent:
        rng, queue = self.rng, self._any()
        most = max_message_length(self.version)
        size = rng.choice((0, 1, 100, 1000, most, most + 1)) if rng.random() < 0.3 else rng.randrange(200)
        return self._sent(cmd.SEND(rng.random() < 0.5, rng.randbytes(size)), queue.snd_id, queue.snd_key)

    def _delete(self) -> Sent:
        queue = self._any()
        if queue in self.queues and len(self.queues) > 3:
            self.queues.remove(queue)
        return self._sent(cmd.DEL(), queue.rcv_id, queue.rcv_key)

    def _add_notifier(self) -> Sent:
        queue, key = self._any(), self._key()
        sent = self._sent(cmd.NKEY(key.spki, generate("x25519").public), queue.rcv_id, queue.rcv_key)

        def learn(reply: object) -> None:
            if isinstance(reply, NID):
                queue.ntf_id, queue.ntf_key = reply.ntf_id, key

        self._new[sent.corr_id] = learn
        return sent

    def _subscribe_notifier(self) -> Sent:
        queue = self._any()
        return self._sent(cmd.NSUB(), queue.ntf_id or os.urandom(24), queue.ntf_key or self._key())

    def _subscribe_service(self) -> Sent:
        service = self.client.connection.service
        assert service is not None
        kind = self.rng.choice((cmd.SUBS, cmd.NSUBS))
        command = kind(self.rng.choice((-1, 0, 1, 2**40)), os.urandom(16))
        return self._sent(command, service.service_id, service.key_pair)

    def _read_link(self) -> Sent:
        key = self._key()
        return self._sent(cmd.LKEY(key.spki), self._any().link_id or os.urandom(24), key)

    # Forwarding.

    def _proxy(self) -> Sent:
        sent = self._sent(cmd.PRXY(self.relay, None), b"", None)

        def learn(reply: object) -> None:
            if isinstance(reply, PKEY):
                signer = certificate_key(reply.cert_key.chain[0])
                key = verify_session_key(signer, reply.cert_key.signed_key) if signer else None
                if key is not None:
                    self._relay_session = reply.session_id, key[1]

        self._new[sent.corr_id] = learn
        return sent

    def _forward(self) -> Sent:
        """A command to the relay, which is mutated inside the box or not."""
        if self._relay_session is None:
            return self._proxy()
        session_id, relay_key = self._relay_session
        version = self.rng.choice((8, 12, 17, 19))
        corr_id, own = os.urandom(24), generate("x25519")
        box = seal_transmission(dh(relay_key, own.private), corr_id, self._inner(session_id, version, corr_id))
        return Sent(encode_command(self.version, cmd.PFWD(version, own.public, box)), session_id, None, corr_id)

    def _forwarded(self) -> Sent:
        """A command as a proxy passes it on. This session need not be a proxy's."""
        connection = self.client.connection
        corr_id, own = os.urandom(24), generate("x25519")
        if connection.session_secret is None or connection.server_key is None:
            return Sent(encode_command(self.version, cmd.RFWD(os.urandom(300))), b"", None, corr_id)
        version, inner_id = self.rng.choice((8, 12, 17, 19)), os.urandom(24)
        inner = self._inner(self.client.session.session_id, version, inner_id)
        box = seal_transmission(dh(connection.server_key, own.private), inner_id, inner)
        forward = FwdTransmission(
            inner_id, version, own.public, mutate(box, self.rng) if self.rng.random() < 0.2 else box
        )
        outer = seal_forward(connection.session_secret, corr_id, forward)
        return Sent(encode_command(self.version, cmd.RFWD(outer)), b"", None, corr_id)

    def _inner(self, session_id: bytes, version: int, corr_id: bytes) -> bytes:
        queue, session, rng = self._any(), Session(session_id, version), self.rng
        command, entity_id = rng.choice(
            (
                (cmd.SEND(False, rng.randbytes(rng.randrange(300))), queue.snd_id),
                (cmd.SKEY(self._key().spki), queue.snd_id),
                (cmd.PING(), b""),
                (cmd.SUB(), queue.rcv_id),
                (cmd.LGET(), queue.link_id or os.urandom(24)),
            )
        )
        _, body = for_auth(session, corr_id, entity_id, encode_command(version, command))
        content = b"\x01" + encode_client(session, body, b"", None)
        return mutate(content, rng)[:16000] if rng.random() < 0.5 else content
