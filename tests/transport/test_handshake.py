"""Handshakes as transcripts: what the client says, what the router answers."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tests.transport.peer import SERVICE_ID, Heard, Router, raw_peer
from weir.client.smp import SmpClient
from weir.crypto.certificates import make_ca, make_online, make_self_signed
from weir.crypto.keys import KeyType, generate
from weir.crypto.session_key import sign_session_key
from weir.transport.client import ConnectError
from weir.transport.handshake import ServiceCredentials
from weir.wire.commands import ServiceRole
from weir.wire.errors import HandshakeError, TransportError
from weir.wire.handshake import (
    ClientHello,
    ClientService,
    ServiceAccepted,
    ServiceRefused,
    decode_server_hello,
    encode_client_hello,
    encode_service_response,
)
from weir.wire.replies import CertChainKey
from weir.wire.versions import SMP_LEGACY_RANGE, SMP_RANGE, VersionRange

Start = Callable[..., Awaitable[Router]]
VERSIONS = range(SMP_RANGE.min, SMP_RANGE.max + 1)


def credentials(role: ServiceRole = ServiceRole.MESSAGING, certificates: int = 1) -> ServiceCredentials:
    if certificates == 1:
        return ServiceCredentials.self_signed(role, make_self_signed())
    ca = make_ca("ed25519", "service CA")
    leaf = make_online(ca, "service", "ed25519", client=True)
    return ServiceCredentials(role, (leaf.certificate, ca.certificate), leaf.key)


def own_session_id(router: Router) -> bytes:
    return router.handlers[-1].connection.session.session_id


@pytest.mark.parametrize("tls12", [False, True], ids=["tls13", "tls12"])
@pytest.mark.parametrize("version", VERSIONS)
async def test_every_version(router: Router, version: int, tls12: bool) -> None:
    async with await SmpClient.connect(router.address, versions=VersionRange(6, version), tls12=tls12) as client:
        assert client.session.version == version
        assert client.connection.server_versions == SMP_RANGE
        assert await client.ping() > 0
        connection = router.handlers[-1].connection
        assert connection.session == client.session
        assert len(connection.session.session_id) == (12 if tls12 else 32)
        assert connection.session_secret == client.connection.session_secret
        assert (connection.session_secret is None) == (version < 7)
        assert connection.service is None and not connection.proxy


@pytest.mark.parametrize("certificates", [1, 2])
@pytest.mark.parametrize("role", list(ServiceRole), ids=lambda role: role.name)
@pytest.mark.parametrize("version", VERSIONS)
async def test_every_version_with_a_service(router: Router, version: int, role: ServiceRole, certificates: int) -> None:
    """The messaging role is offered from 19, the others from 16; before, the session has no service."""
    own = credentials(role, certificates)
    async with await SmpClient.connect(router.address, versions=VersionRange(6, version), service=own) as client:
        await client.ping()
        connection = router.handlers[-1].connection
        if version < (19 if role is ServiceRole.MESSAGING else 16):
            assert client.service_id is None and connection.service is None
            assert router.services == []
            return
        assert client.service_id == SERVICE_ID
        assert router.services == [(role, own.chain, own.cert_hash)]
        assert connection.service is not None
        assert client.connection.service is not None
        assert connection.service.service_id == SERVICE_ID
        assert connection.service.role is role
        assert connection.service.cert_hash == own.cert_hash
        assert connection.service.key == client.connection.service.key_pair.public


@pytest.mark.parametrize("key_type", ["ed25519", "ed448"])
async def test_service_over_tls_12(router: Router, key_type: KeyType) -> None:
    own = ServiceCredentials.self_signed(ServiceRole.MESSAGING, make_self_signed(key_type=key_type))
    async with await SmpClient.connect(router.address, service=own, tls12=True) as client:
        assert client.service_id == SERVICE_ID
        assert router.services == [(ServiceRole.MESSAGING, own.chain, own.cert_hash)]
        await client.ping()


@pytest.mark.parametrize("version", [14, 15, 16, 19])
async def test_proxy_has_no_block_encryption(router: Router, version: int) -> None:
    async with await SmpClient.connect(router.address, versions=VersionRange(8, version), proxy=True) as client:
        await client.ping()
        connection = router.handlers[-1].connection
        assert connection.proxy
        assert connection._snd_chain is None and client.connection._snd_chain is None
        assert connection.session_secret is not None


async def test_proxy_to_an_old_relay_agrees_on_10(start: Start) -> None:
    """A relay below 14 cannot be told that the client is a proxy, so the version stays below block encryption."""
    router = await start(versions=VersionRange(6, 12))
    async with await SmpClient.connect(router.address, proxy=True) as client:
        assert client.session.version == 10
        await client.ping()


async def test_first_block(router: Router) -> None:
    """Range, session id, chain and signed key, padded with `#` to 16,384 bytes."""
    peer = await raw_peer(router.port)
    block = await peer.hear_raw()
    assert isinstance(block, bytes) and len(block) == 16384
    size = int.from_bytes(block[:2], "big")
    assert set(block[2 + size :]) == {ord("#")}
    hello = decode_server_hello(block[2 : 2 + size])
    assert not isinstance(hello, HandshakeError)
    assert hello.versions == SMP_RANGE
    assert hello.session_id == peer.session_id
    assert hello.key is not None and hello.key.chain == router.listener.identity.online.chain
    peer.close()


async def test_without_alpn_the_hello_is_legacy(router: Router) -> None:
    peer = await raw_peer(router.port, alpn=None)
    content = await peer.hear()
    assert isinstance(content, bytes) and len(content) == 37
    hello = decode_server_hello(content)
    assert not isinstance(hello, HandshakeError)
    assert hello.versions == SMP_LEGACY_RANGE and hello.key is None
    peer.say(encode_client_hello(ClientHello(6, router.listener.identity.fingerprint)))
    await router.arrived.wait()
    assert router.handlers[-1].connection.session.version == 6
    peer.close()


async def test_without_alpn_only_version_6_is_accepted(router: Router) -> None:
    peer = await raw_peer(router.port, alpn=None)
    await peer.hear()
    peer.say(encode_client_hello(ClientHello(7, router.listener.identity.fingerprint)))
    assert await peer.hear() is Heard.CLOSED


async def test_unknown_alpn_gets_alert_120(router: Router) -> None:
    peer = await raw_peer(router.port, alpn="xftp/1")
    assert await peer.hear() is Heard.ALERT
    assert peer.last == bytes.fromhex("1503030002 02") + bytes([120])
    assert await peer.hear() is Heard.CLOSED
    assert router.listener.stats.failed == 1


def hello_of(router: Router, **changes: object) -> bytes:
    own = ClientHello(19, router.listener.identity.fingerprint, generate("x25519").public)
    return encode_client_hello(replace(own, **changes))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "changes",
    [
        {"key_hash": bytes(32)},
        {"key_hash": b""},
        {"version": 5},
        {"version": 20},
        {"version": 65535},
        {"key_hash": bytes(32), "version": 3},
    ],
    ids=str,
)
async def test_wrong_identity_or_version_is_disconnected(router: Router, changes: dict[str, object]) -> None:
    """The router says nothing: it closes, and no session comes to be."""
    peer = await raw_peer(router.port)
    await peer.hear()
    peer.say(hello_of(router, **changes))
    assert await peer.hear() is Heard.CLOSED
    assert router.handlers == [] and router.listener.stats.failed == 1


@pytest.mark.parametrize(
    "content",
    [b"", b"\x00", b"\x00\x13", b"\x00\x13\x20short", bytes(16382), b"\xff" * 16382, b"GET / HTTP/1.1\r\n\r\n"],
    ids=lambda content: content[:12].hex() or "empty",
)
async def test_garbage_hello_is_disconnected(router: Router, content: bytes) -> None:
    peer = await raw_peer(router.port)
    await peer.hear()
    peer.say(content)
    assert await peer.hear() is Heard.CLOSED
    assert router.handlers == []


async def test_hello_whose_length_is_beyond_the_block(router: Router) -> None:
    peer = await raw_peer(router.port)
    await peer.hear()
    peer.say_raw(b"\xff\xff" + bytes(16382))
    assert await peer.hear() is Heard.CLOSED
    assert router.handlers == []


async def test_bytes_after_the_hello_are_ignored(router: Router) -> None:
    peer = await raw_peer(router.port)
    await peer.hear()
    peer.say(hello_of(router) + b"from a later version")
    await router.arrived.wait()
    assert router.handlers[-1].connection.session.version == 19
    peer.close()


async def test_hello_with_nothing_where_the_key_may_be(router: Router) -> None:
    """The key is optional: without one there is no block encryption, and no secret for proxies."""
    peer = await raw_peer(router.port)
    await peer.hear()
    peer.say(hello_of(router, key=None))
    await router.arrived.wait()
    connection = router.handlers[-1].connection
    assert connection.session_secret is None and connection._snd_chain is None
    peer.close()


async def test_hello_in_pieces_and_garbage_behind_it(router: Router) -> None:
    """TLS records need not be blocks; a block that cannot be opened is answered, not cut off."""
    peer = await raw_peer(router.port)
    await peer.hear()
    block = (lambda content: len(content).to_bytes(2, "big") + content + b"#" * (16382 - len(content)))(
        hello_of(router)
    )
    for at in range(0, 16384, 1000):
        peer.say_raw(block[at : at + 1000])
    peer.say_raw(bytes(16384))
    reply = await peer.hear_raw()
    assert isinstance(reply, bytes) and len(reply) == 16384
    assert router.handlers[-1].contents == [b""]
    peer.close()


# Services


def service_hello(router: Router, own: ServiceCredentials, **changes: object) -> bytes:
    key = generate("ed25519")
    signed = sign_session_key(own.key, key.spki)
    cert_key = CertChainKey(own.chain, signed)._replace(**changes)  # type: ignore[arg-type]
    return hello_of(router, service=ClientService(own.role, cert_key))


REFUSED = {error: encode_service_response(ServiceRefused(error)) for error in HandshakeError}


async def test_service_is_told_its_id(router: Router) -> None:
    own = credentials()
    peer = await raw_peer(router.port, service=own)
    await peer.hear()
    peer.say(service_hello(router, own))
    assert await peer.hear() == encode_service_response(ServiceAccepted(SERVICE_ID))
    peer.close()


async def refused(router: Router, own: ServiceCredentials | None, hello: bytes) -> bytes:
    peer = await raw_peer(router.port, service=own)
    await peer.hear()
    peer.say(hello)
    content = await peer.hear()
    assert isinstance(content, bytes)
    assert await peer.hear() is Heard.CLOSED
    assert router.handlers == [] and router.listener.stats.failed == 1
    return content


async def test_service_without_a_certificate_in_tls(router: Router) -> None:
    assert await refused(router, None, service_hello(router, credentials())) == REFUSED[HandshakeError.BAD_AUTH]


async def test_service_with_another_chain_in_tls(router: Router) -> None:
    hello = service_hello(router, credentials())
    assert await refused(router, credentials(), hello) == REFUSED[HandshakeError.BAD_AUTH]
    assert router.services == []


async def test_service_key_signed_by_another_key(router: Router) -> None:
    own = credentials()
    hello = service_hello(router, own, signed_key=sign_session_key(generate("ed25519"), generate("ed25519").spki))
    assert await refused(router, own, hello) == REFUSED[HandshakeError.BAD_AUTH]


async def test_service_key_of_another_kind(router: Router) -> None:
    own = credentials()
    hello = service_hello(router, own, signed_key=sign_session_key(own.key, generate("x25519").spki))
    assert await refused(router, own, hello) == REFUSED[HandshakeError.BAD_AUTH]


async def test_service_with_somebody_elses_identity_certificate(router: Router) -> None:
    """A leaf of one's own under a CA that did not sign it: TLS lets it pass, the handshake must not."""
    victim, thief = credentials(certificates=2), make_self_signed()
    own = ServiceCredentials(ServiceRole.MESSAGING, (thief.certificate, victim.chain[1]), thief.key)
    assert await refused(router, own, service_hello(router, own)) == REFUSED[HandshakeError.BAD_AUTH]
    assert router.services == []


async def test_service_with_an_expired_certificate(router: Router) -> None:
    own = ServiceCredentials.self_signed(ServiceRole.MESSAGING, make_self_signed(days=0))
    content = await refused(router, own, service_hello(router, own))
    assert content == REFUSED[HandshakeError.BAD_AUTH]


async def test_service_with_five_certificates(router: Router) -> None:
    own = credentials(certificates=2)
    long = ServiceCredentials(own.role, own.chain + own.chain[1:] * 3, own.key)
    assert await refused(router, long, service_hello(router, long)) == REFUSED[HandshakeError.BAD_AUTH]


async def test_service_the_router_does_not_want(router: Router) -> None:
    router.service_answer = HandshakeError.BAD_SERVICE
    own = credentials()
    assert await refused(router, own, service_hello(router, own)) == REFUSED[HandshakeError.BAD_SERVICE]


async def test_service_blocks_that_come_before_its_id(router: Router) -> None:
    """A client need not wait: what it sends meanwhile is handled once it is known."""
    own = credentials()
    peer = await raw_peer(router.port, service=own)
    await peer.hear()
    peer.say(service_hello(router, own))
    peer.say_raw(bytes(16384))
    assert await peer.hear() == encode_service_response(ServiceAccepted(SERVICE_ID))
    assert len(await peer.hear_raw()) == 16384  # type: ignore[arg-type]
    assert router.handlers[-1].contents == [b""]
    peer.close()


# The client's own checks


async def test_client_refuses_another_identity(router: Router) -> None:
    with pytest.raises(ConnectError) as failure:
        await SmpClient.connect(replace(router.address, fingerprint=bytes(32)))
    assert failure.value.error is HandshakeError.IDENTITY
    assert router.handlers == []


async def test_client_refuses_other_versions(start: Start) -> None:
    router = await start(versions=VersionRange(6, 8))
    with pytest.raises(ConnectError) as failure:
        await SmpClient.connect(router.address, versions=VersionRange(9, 19))
    assert failure.value.error is TransportError.VERSION


async def test_client_hears_why_its_service_is_refused(router: Router) -> None:
    router.service_answer = HandshakeError.BAD_SERVICE
    with pytest.raises(ConnectError) as failure:
        await SmpClient.connect(router.address, service=credentials())
    assert failure.value.error is HandshakeError.BAD_SERVICE


@pytest.mark.parametrize("tls12", [False, True], ids=["tls13", "tls12"])
async def test_ed448_identity(start: Start, identity_ed448: Path, tls12: bool) -> None:
    router = await start(identity_ed448)
    async with await SmpClient.connect(router.address, tls12=tls12) as client:
        await client.ping()
        assert router.handlers[-1].connection.session == client.session
