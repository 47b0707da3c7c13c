"""Handshakes as transcripts: what the client says, what the router answers."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from unittest.mock import Mock

import pytest

from tests.transport.peer import NTF_DIALECT, SERVICE_ID, SMP_DIALECT, Dialect, Heard, Router, raw_peer
from weir.client.smp import SmpClient
from weir.crypto.block import pad_block
from weir.crypto.certificates import certificate_key, fingerprint, make_ca, make_online, make_self_signed
from weir.crypto.keys import KeyType, dh, generate
from weir.crypto.session_key import sign_session_key, verify_session_key
from weir.transport.client import ConnectError
from weir.transport.handshake import Reply
from weir.transport.ntf import NtfClientHandshake
from weir.transport.smp import ServiceCredentials
from weir.transport.tls import peer_chain
from weir.wire.errors import HandshakeError, TransportError
from weir.wire.ntf.handshake import NtfServerHello
from weir.wire.ntf.handshake import encode_server_hello as encode_ntf_server_hello
from weir.wire.smp.commands import ServiceRole
from weir.wire.smp.handshake import (
    ClientHello,
    ClientService,
    ServiceAccepted,
    ServiceRefused,
    encode_client_hello,
    encode_service_response,
)
from weir.wire.smp.replies import CertChainKey
from weir.wire.versions import SMP_RANGE, VersionRange

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


async def test_first_block(either: Router) -> None:
    """Range, session id, [chain] and signed key, padded with `#` to the size of a block."""
    dialect = either.dialect
    peer = await either.peer()
    block = await peer.hear_raw()
    assert isinstance(block, bytes) and len(block) == dialect.block_size
    size = int.from_bytes(block[:2], "big")
    assert set(block[2 + size :]) == {ord("#")}
    hello = dialect.decode_server_hello(block[2 : 2 + size])
    assert hello.versions == dialect.versions
    assert hello.session_id == peer.session_id
    if dialect is SMP_DIALECT:
        assert hello.key is not None and hello.key.chain == either.listener.identity.online.chain
    else:
        chain = peer_chain(peer._tls)  # type: ignore[arg-type]
        key = verify_session_key(certificate_key(chain[0]), hello.signed_key)  # type: ignore[arg-type]
        assert key is not None and key[0] == "x25519"
    peer.close()


async def test_client_certificate_is_asked_for_only_in_smp(either: Router) -> None:
    own = credentials()
    peer = await either.peer(service=own)
    await peer.hear()
    (connection,) = either.listener._half_open
    assert connection._handshake_state.peer_chain == (own.chain if either.dialect is SMP_DIALECT else ())
    peer.close()


@pytest.mark.parametrize("tls12", [False, True], ids=["tls13", "tls12"])
async def test_blocks_go_both_ways_at_every_version(either: Router, tls12: bool) -> None:
    dialect = either.dialect
    for version in range(dialect.versions.min, dialect.versions.max + 1):
        offered = VersionRange(dialect.versions.min, version)
        connection = await dialect.connect(either.address, versions=offered, tls12=tls12)
        answers: asyncio.Queue[bytes] = asyncio.Queue()
        connection.attach(Mock(on_block=answers.put_nowait))
        for _ in range(3):
            connection.send_contents([dialect.ping(connection.session)] * 4)
        contents = [await answers.get() for _ in range(12)]
        assert all(content.endswith(b"PONG") for content in contents)
        server = either.handlers[-1].connection
        assert server.session == connection.session and connection.session.version == version
        assert connection.server_versions == dialect.versions
        own = generate("x25519")
        assert connection.server_key is not None
        assert dh(connection.server_key, own.private) == dh(own.public, server.session_key)
        connection.close()


async def test_ntf_block_is_512_bytes_on_the_wire(start: Start) -> None:
    """One block in clear, byte by byte: hello, PING and PONG are a transmission of their own at version 1."""
    router = await start(dialect=NTF_DIALECT)
    peer = await router.peer()
    await peer.hear_raw()
    peer.say(NTF_DIALECT.client_hello(1, router.listener.identity.fingerprint))
    corr_id = bytes(range(24))
    session_id = bytes((len(peer.session_id),)) + peer.session_id
    peer.say_raw(pad_block(b"\0" + session_id + b"\x18" + corr_id + b"\0PING", 512))
    block = await peer.hear_raw()
    pong = b"\0" + session_id + b"\x18" + corr_id + b"\0PONG"
    assert block == len(pong).to_bytes(2, "big") + pong + b"#" * (510 - len(pong))
    peer.close()


async def test_without_alpn_the_hello_is_legacy(either: Router) -> None:
    dialect = either.dialect
    peer = await either.peer(alpn=None)
    content = await peer.hear()
    assert isinstance(content, bytes) and len(content) == 37
    hello = dialect.decode_server_hello(content)
    assert hello.versions == dialect.legacy
    assert (hello.key if dialect is SMP_DIALECT else hello.signed_key) is None
    peer.say(dialect.client_hello(dialect.legacy.max, either.listener.identity.fingerprint))
    await either.arrived.wait()
    assert either.handlers[-1].connection.session.version == dialect.legacy.max
    peer.close()


async def test_without_alpn_only_the_legacy_version_is_accepted(either: Router) -> None:
    peer = await either.peer(alpn=None)
    await peer.hear()
    peer.say(either.dialect.client_hello(either.dialect.legacy.max + 1, either.listener.identity.fingerprint))
    assert await peer.hear() is Heard.CLOSED


@pytest.mark.parametrize("alpn", ["xftp/1", "other"])
async def test_unknown_alpn_gets_alert_120(either: Router, alpn: str) -> None:
    others = {"smp/1": "ntf/1", "ntf/1": "smp/1"}
    peer = await either.peer(alpn=others[either.dialect.protocol.alpn] if alpn == "other" else alpn)
    assert await peer.hear() is Heard.ALERT
    assert peer.last == bytes.fromhex("1503030002 02") + bytes([120])
    assert await peer.hear() is Heard.CLOSED
    assert either.listener.stats.failed == 1


def hello_of(router: Router, **changes: object) -> bytes:
    own = ClientHello(19, router.listener.identity.fingerprint, generate("x25519").public)
    return encode_client_hello(replace(own, **changes))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("key_hash", "version"),
    [(bytes(32), 0), (b"", 0), (None, -1), (None, 1), (None, 65535), (bytes(32), -1)],
    ids=["identity", "empty", "below", "above", "highest", "both"],
)
async def test_wrong_identity_or_version_is_disconnected(either: Router, key_hash: bytes | None, version: int) -> None:
    """`version` counts from the offered range: below its minimum, above its maximum. The router closes in silence."""
    offered = either.dialect.versions
    said = offered.max if version == 0 else offered.min - 1 if version < 0 else min(offered.max + version, 65535)
    peer = await either.peer()
    await peer.hear()
    fingerprint = either.listener.identity.fingerprint if key_hash is None else key_hash
    peer.say(either.dialect.client_hello(said, fingerprint))
    assert await peer.hear() is Heard.CLOSED
    assert either.handlers == [] and either.listener.stats.failed == 1


async def test_a_version_far_below_is_disconnected(router: Router) -> None:
    peer = await raw_peer(router.port)
    await peer.hear()
    peer.say(hello_of(router, version=3, key_hash=bytes(32)))
    assert await peer.hear() is Heard.CLOSED
    assert router.handlers == [] and router.listener.stats.failed == 1


@pytest.mark.parametrize(
    "content",
    [b"", b"\x00", b"\x00\x13", b"\x00\x13\x20short", bytes(16382), b"\xff" * 16382, b"GET / HTTP/1.1\r\n\r\n"],
    ids=lambda content: content[:12].hex() or "empty",
)
async def test_garbage_hello_is_disconnected(either: Router, content: bytes) -> None:
    peer = await either.peer()
    await peer.hear()
    peer.say(content[: either.dialect.block_size - 2])
    assert await peer.hear() is Heard.CLOSED
    assert either.handlers == []


async def test_hello_whose_length_is_beyond_the_block(either: Router) -> None:
    peer = await either.peer()
    await peer.hear()
    peer.say_raw(b"\xff\xff" + bytes(either.dialect.block_size - 2))
    assert await peer.hear() is Heard.CLOSED
    assert either.handlers == []


async def test_bytes_after_the_hello_are_ignored(either: Router) -> None:
    newest = either.dialect.versions.max
    peer = await either.peer()
    await peer.hear()
    hello = either.dialect.client_hello(newest, either.listener.identity.fingerprint)
    peer.say(hello + b"from a later version")
    await either.arrived.wait()
    assert either.handlers[-1].connection.session.version == newest
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


async def test_hello_in_pieces_and_garbage_behind_it(either: Router) -> None:
    """TLS records need not be blocks; a block that cannot be opened is answered, not cut off."""
    size = either.dialect.block_size
    peer = await either.peer()
    await peer.hear()
    block = pad_block(
        either.dialect.client_hello(either.dialect.versions.max, either.listener.identity.fingerprint), size
    )
    for at in range(0, size, size // 16 + 1):
        peer.say_raw(block[at : at + size // 16 + 1])
    peer.say_raw(bytes(size))
    reply = await peer.hear_raw()
    assert isinstance(reply, bytes) and len(reply) == size
    assert either.handlers[-1].contents == [b""]
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


async def test_client_refuses_another_identity(either: Router) -> None:
    with pytest.raises(ConnectError) as failure:
        await either.dialect.connect(replace(either.address, fingerprint=bytes(32)))
    assert failure.value.error is HandshakeError.IDENTITY
    assert either.handlers == []


async def test_client_refuses_other_versions(start: Start, dialect: Dialect) -> None:
    offered = dialect.versions
    router = await start(dialect=dialect, versions=VersionRange(offered.min, offered.max - 1))
    with pytest.raises(ConnectError) as failure:
        await dialect.connect(router.address, versions=VersionRange(offered.max, offered.max))
    assert failure.value.error is TransportError.VERSION


async def test_ntf_client_refuses_a_key_that_another_certificate_has_signed() -> None:
    """In NTF the session key's signer is the certificate that TLS was done with."""
    ca = make_ca("ed25519", "router CA")
    leaf, thief = make_online(ca, "router", "ed25519"), make_online(ca, "router", "ed25519")
    handshake = NtfClientHandshake(fingerprint(ca.certificate), NTF_DIALECT.versions)
    assert handshake.begin(b"s" * 32, (leaf.certificate, ca.certificate)) is None
    signed = sign_session_key(thief.key, generate("x25519").spki)
    hello = NtfServerHello(NTF_DIALECT.versions, b"s" * 32, signed)
    assert handshake.receive(encode_ntf_server_hello(hello)) is HandshakeError.BAD_AUTH
    signed = sign_session_key(leaf.key, generate("x25519").spki)
    hello = NtfServerHello(NTF_DIALECT.versions, b"s" * 32, signed)
    assert isinstance(handshake.receive(encode_ntf_server_hello(hello)), Reply)


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
