"""Verification against records, without sockets: every row of who may do what."""

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import pytest

from tests.support import crypto_mb
from weir.crypto import multibuffer
from weir.crypto.authenticator import authenticate, sign
from weir.crypto.keys import KeyPair, KeyType, dh, generate, public_of
from weir.router.commands.verification import Verifier, is_contact, is_secured_messaging
from weir.router.store.records import EntityStatus, QueueRecord
from weir.runtime import verification
from weir.runtime.verification import Ahead
from weir.wire.errors import CommandError, ErrorType, Simple
from weir.wire.smp import commands as cmd
from weir.wire.smp.commands import Command, QueueMode, ServiceRole
from weir.wire.smp.transmission import ClientTransmission

SESSION = generate("x25519")
SERVICE_KEY = generate("ed25519")
CERT_HASH = b"\7" * 32
TYPES: list[KeyType] = ["ed25519", "ed448", "x25519"]
MESSAGE = b"\x20session" + b"authorised bytes"


@dataclass(frozen=True)
class Service:
    role: ServiceRole = ServiceRole.MESSAGING
    service_id: bytes = b"s" * 24
    cert_hash: bytes = CERT_HASH
    key: bytes = SERVICE_KEY.public


def authorise(key: KeyPair, message: bytes, corr_id: bytes) -> bytes:
    if key.type == "x25519":
        return authenticate(dh(public_of("x25519", SESSION.private), key.private), corr_id, message)
    return sign(key.type, key.private, message)


def transmission(
    command: Command, key: KeyPair | None, *, service: KeyPair | None = None, entity_id: bytes = b"q" * 24
) -> ClientTransmission:
    corr_id = b"c" * 24
    bound = CERT_HASH + MESSAGE if service is not None else MESSAGE
    auth = b"" if key is None else authorise(key, bound, corr_id)
    service_sig = None if service is None else sign("ed25519", service.private, MESSAGE)
    return ClientTransmission(auth, service_sig, MESSAGE, corr_id, entity_id, command)


def record(**fields: object) -> QueueRecord:
    base = QueueRecord(
        rcv_id=b"q" * 24,
        snd_id=b"n" * 24,
        partition=0,
        rev=1,
        rcv_keys=(generate("x25519").spki,),
        dh_secret=bytes(32),
        snd_key=None,
        mode=QueueMode.MESSAGING,
        link_id=None,
        ntf_id=None,
        ntf_key=None,
        ntf_dh_secret=None,
        status=EntityStatus.ACTIVE,
        day=0,
        rcv_service=None,
        ntf_service=None,
    )
    return replace(base, **fields)  # type: ignore[arg-type]


def check(t: ClientTransmission, queue: QueueRecord, service: Service | None = None) -> ErrorType | None:
    return Verifier(SESSION.private, service).queue(t, queue)


@pytest.mark.parametrize("queue_type", TYPES)
@pytest.mark.parametrize("used_type", TYPES)
def test_only_the_queue_key_authorises(queue_type: KeyType, used_type: KeyType) -> None:
    key = generate(queue_type)
    queue = record(rcv_keys=(key.spki,), snd_key=key.spki)
    other = generate(used_type)
    for command in (cmd.SUB(), cmd.SEND(False, b"")):
        assert check(transmission(command, key), queue) is None
        assert check(transmission(command, other), queue) is Simple.AUTH
    assert check(transmission(cmd.SEND(False, b""), None), queue) is Simple.AUTH


def test_a_cached_secret_serves_only_its_own_key() -> None:
    key, other = generate("x25519"), generate("x25519")
    queue = record(rcv_keys=(key.spki,))
    verifier = Verifier(SESSION.private, None)
    good, bad = transmission(cmd.ACK(b""), key), transmission(cmd.ACK(b""), other)
    assert not verifier.is_cheap(good, key.spki)
    assert verifier.queue(bad, queue) is Simple.AUTH
    assert not verifier.is_cheap(good, key.spki), "a failure fills no cache"
    assert verifier.queue(good, queue) is None
    assert verifier.is_cheap(good, key.spki)
    assert verifier.queue(bad, queue) is Simple.AUTH
    assert verifier.queue(good, queue) is None


def test_any_of_several_recipient_keys() -> None:
    keys = [generate("ed25519"), generate("x25519"), generate("ed448")]
    queue = record(rcv_keys=tuple(key.spki for key in keys))
    assert [check(transmission(cmd.QUE(), key), queue) for key in keys] == [None, None, None]


def test_send_before_the_queue_is_secured() -> None:
    assert check(transmission(cmd.SEND(False, b""), None), record()) is None
    assert check(transmission(cmd.SEND(False, b""), generate("ed25519")), record()) is Simple.AUTH


@pytest.mark.parametrize("command", [cmd.SKEY, cmd.LKEY])
def test_securing_by_the_sender(command: type[cmd.SKEY] | type[cmd.LKEY]) -> None:
    key, other = generate("ed25519"), generate("ed25519")
    t = transmission(command(key.spki), key)
    assert check(t, record()) is None
    assert check(t, record(snd_key=key.spki)) is None
    assert check(t, record(snd_key=other.spki)) is Simple.AUTH
    assert check(t, record(mode=QueueMode.CONTACT)) is Simple.AUTH
    assert check(t, record(mode=None)) is Simple.AUTH
    assert check(transmission(command(key.spki), other), record()) is Simple.AUTH


def test_lget_only_of_contact_queues() -> None:
    t = transmission(cmd.LGET(), None)
    assert check(t, record(mode=QueueMode.CONTACT)) is None
    assert check(t, record()) is Simple.AUTH
    assert is_contact(record(mode=None)) and not is_contact(record(mode=None, snd_key=b"k"))
    assert is_secured_messaging(record(snd_key=b"k")) and not is_secured_messaging(record())


def test_nsub_needs_the_notifier_key() -> None:
    key = generate("ed25519")
    assert check(transmission(cmd.NSUB(), key), record(ntf_key=key.spki)) is None
    assert check(transmission(cmd.NSUB(), key), record()) is Simple.AUTH


@dataclass
class Waiting:
    """A command that waits for its turn. `key` is in the queue's record; None: there is no such queue."""

    t: ClientTransmission
    key: bytes | None = None
    ahead: Ahead | None = None

    def likely_key(self) -> bytes | None:
        return self.key


@pytest.fixture(params=["off", *crypto_mb.builds()])
def accelerator(request: pytest.FixtureRequest) -> Iterator[str]:
    """Public-key operations by libsodium, and by each build of the accelerator that is here."""
    with crypto_mb.using(crypto_mb.builds().get(request.param, "off")):
        yield request.param


@pytest.mark.usefixtures("accelerator")
def test_service_signatures_verified_ahead() -> None:
    key, stranger = generate("x25519"), generate("ed25519")
    queue = record(rcv_keys=(key.spki,))
    verifier = Verifier(SESSION.private, Service())
    sent = []
    for n in range(30):
        message = MESSAGE + bytes((n,))
        signer = stranger if n % 7 == 3 else SERVICE_KEY
        sent.append(
            ClientTransmission(
                authorise(key, CERT_HASH + message, b"c" * 24),
                sign("ed25519", signer.private, message),
                message,
                b"c" * 24,
                b"q" * 24,
                cmd.SUB(),
            )
        )
    sent[20] = sent[20]._replace(service_sig=sent[19].service_sig)  # right, but of another command
    answers = []
    waiting = deque(Waiting(t, key.spki) for t in sent)
    while waiting:
        first = waiting.popleft()
        verifier.look_ahead(first, waiting)
        answers.append(verifier.queue(first.t, queue, first.ahead))
    assert answers == [Simple.SERVICE if n % 7 == 3 or n == 20 else None for n in range(30)]


@pytest.mark.usefixtures("accelerator")
def test_secrets_computed_ahead() -> None:
    """Keys of every kind, missing queues and wrong authenticators among them: the answers are those of one by one."""
    verifier = Verifier(SESSION.private, None)
    waiting, queues, expected = deque[Waiting](), list[QueueRecord | None](), list[ErrorType | None]()
    for n in range(40):
        key, used = generate("ed25519" if n % 9 == 4 else "x25519"), generate("x25519")
        wrong, missing = n % 7 == 3, n % 5 == 2
        t = transmission(cmd.SUB(), used if wrong or key.type != "x25519" else key)
        waiting.append(Waiting(t, None if missing else key.spki))
        queues.append(None if missing else record(rcv_keys=(key.spki,)))
        expected.append(Simple.AUTH if wrong or missing or key.type != "x25519" else None)
    answers = []
    for queue in queues:
        first = waiting.popleft()
        verifier.look_ahead(first, waiting)
        if queue is None:
            answers.append(verifier.missing(first.t, first.ahead))
        else:
            answers.append(verifier.queue(first.t, queue, first.ahead))
    assert answers == expected


def test_a_missing_queue_costs_what_a_present_one_costs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each command of a turn occupies one lane, whether its queue exists or not, and verifies with that secret."""
    pairs: list[int] = []

    def dh_many(wanted: Sequence[tuple[bytes, bytes]]) -> list[bytes]:
        pairs.append(len(wanted))
        return [dh(*pair) for pair in wanted]

    def one_by_one(*_: object) -> bytes:
        raise AssertionError("a secret that was computed ahead is computed again")

    monkeypatch.setattr(multibuffer, "lanes", lambda: 8)
    monkeypatch.setattr(multibuffer, "dh_many", dh_many)
    monkeypatch.setattr(verification, "dh", one_by_one)
    monkeypatch.setattr(verification, "dummy_verify", one_by_one)
    verifier = Verifier(SESSION.private, None)
    keys = [generate("x25519") for _ in range(8)]
    commands = [Waiting(transmission(cmd.SUB(), key), key.spki if n % 2 else None) for n, key in enumerate(keys)]
    verifier.look_ahead(commands[0], commands[1:])
    assert pairs == [8]
    for n, (command, key) in enumerate(zip(commands, keys, strict=True)):
        if n % 2:
            assert verifier.queue(command.t, record(rcv_keys=(key.spki,)), command.ahead) is None
        else:
            assert verifier.missing(command.t, command.ahead) is Simple.AUTH


def test_what_is_verified_ahead_serves_once() -> None:
    key = generate("x25519")
    queue = record(rcv_keys=(key.spki,))
    verifier = Verifier(SESSION.private, Service())
    one, other = (transmission(cmd.SUB(), key, service=SERVICE_KEY) for _ in range(2))
    other = other._replace(service_sig=sign("ed25519", SERVICE_KEY.private, MESSAGE + b"!"), authorized=MESSAGE + b"!")
    verifier.look_ahead(Waiting(one), [Waiting(other)])
    changed = other._replace(authorized=MESSAGE + b"?")
    assert verifier.queue(changed, queue) is Simple.SERVICE
    assert verifier.queue(one, queue) is None
    assert verifier.queue(one, queue) is None, "by itself"
    plain = Verifier(SESSION.private, None)
    plain.look_ahead(Waiting(one), [Waiting(other)])
    assert plain.queue(one, queue) is Simple.SERVICE


def test_service_signature_where_it_has_to_be() -> None:
    key = generate("x25519")
    queue = record(rcv_keys=(key.spki,))
    service = Service()
    signed = transmission(cmd.SUB(), key, service=SERVICE_KEY)
    assert check(signed, queue, service) is None
    assert check(transmission(cmd.SUB(), key), queue, service) is Simple.SERVICE
    assert check(signed, queue, None) is Simple.SERVICE
    assert check(transmission(cmd.SUB(), key, service=generate("ed25519")), queue, service) is Simple.SERVICE
    assert check(transmission(cmd.ACK(b""), key), queue, service) is None
    assert check(transmission(cmd.ACK(b""), key, service=SERVICE_KEY), queue, service) is Simple.SERVICE


def test_the_queue_key_signs_the_service_too() -> None:
    key = generate("ed25519")
    unbound = transmission(cmd.SUB(), key)._replace(service_sig=sign("ed25519", SERVICE_KEY.private, MESSAGE))
    assert check(unbound, record(rcv_keys=(key.spki,)), Service()) is Simple.AUTH


@pytest.mark.parametrize(
    ("role", "command", "allowed"),
    [
        (ServiceRole.MESSAGING, cmd.ACK(b""), True),
        (ServiceRole.NOTIFIER, cmd.ACK(b""), False),
        (ServiceRole.PROXY, cmd.ACK(b""), False),
        (ServiceRole.MESSAGING, cmd.SEND(False, b""), True),
        (ServiceRole.NOTIFIER, cmd.SEND(False, b""), False),
    ],
)
def test_roles(role: ServiceRole, command: Command, allowed: bool) -> None:
    key = generate("ed25519")
    queue = record(rcv_keys=(key.spki,), snd_key=key.spki)
    expected = None if allowed else CommandError.PROHIBITED
    assert check(transmission(command, key), queue, Service(role)) is expected


def test_commands_without_a_queue() -> None:
    key = generate("ed25519")
    new = cmd.NEW(key.spki, bytes(32))
    plain = Verifier(SESSION.private, None)
    service = Verifier(SESSION.private, Service())
    notifier = Verifier(SESSION.private, Service(ServiceRole.NOTIFIER))
    assert plain.other(transmission(new, key)) is None
    assert plain.other(transmission(new, generate("ed25519"))) is Simple.AUTH
    assert service.other(transmission(new, key, service=SERVICE_KEY)) is None
    assert service.other(transmission(new, key)) is Simple.SERVICE
    assert notifier.other(transmission(new, key, service=SERVICE_KEY)) is CommandError.PROHIBITED
    subs = transmission(cmd.SUBS(0, bytes(16)), SERVICE_KEY, entity_id=b"s" * 24)
    assert service.other(subs) is None
    assert service.other(subs._replace(entity_id=b"x" * 24)) is Simple.SERVICE
    assert service.other(transmission(cmd.SUBS(0, bytes(16)), key, entity_id=b"s" * 24)) is Simple.SERVICE
    assert notifier.other(subs) is CommandError.PROHIBITED
    assert plain.other(subs) is Simple.SERVICE
    assert plain.other(transmission(cmd.PING(), None, entity_id=b"")) is None
    assert service.other(transmission(cmd.RFWD(b""), None, entity_id=b"")) is CommandError.PROHIBITED


def test_a_missing_queue_is_auth_whatever_is_used() -> None:
    verifier = Verifier(SESSION.private, None)
    for used in TYPES:
        assert verifier.missing(transmission(cmd.SUB(), generate(used))) is Simple.AUTH
    assert verifier.missing(transmission(cmd.SEND(False, b""), None)) is Simple.AUTH


def test_a_forwarded_command_has_no_service() -> None:
    key = generate("x25519")
    verifier = Verifier(SESSION.private, Service(ServiceRole.PROXY)).forwarded()
    assert verifier.queue(transmission(cmd.SEND(False, b""), key), record(snd_key=key.spki)) is None
