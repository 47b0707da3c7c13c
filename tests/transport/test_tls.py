"""The raw TLS facts, as a client that is not ours sees them: `openssl s_client`."""

import asyncio
import re
import shutil
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from tests.transport.peer import Router, raw_peer
from weir.client.smp import SmpClient
from weir.crypto.certificates import make_self_signed
from weir.crypto.identity import init_identity, renew_online
from weir.crypto.keys import KeyType
from weir.crypto.pem import certificates_to_pem, key_to_pem
from weir.transport.tls import peer_chain, session_id

pytestmark = pytest.mark.skipif(shutil.which("openssl") is None, reason="needs the openssl command")

Start = Callable[..., Awaitable[Router]]


async def s_client(router: Router, *options: str, commands: bytes = b"", wait: bytes = b"") -> str:
    """The output of `openssl s_client`, which gets `commands` once it has printed `wait`, then the end of its input."""
    process = await asyncio.create_subprocess_exec(
        "openssl",
        "s_client",
        "-connect",
        f"127.0.0.1:{router.port}",
        *options,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    assert process.stdin is not None and process.stdout is not None
    output = b""
    if wait:
        while wait not in output:
            chunk = await process.stdout.read(65536)
            assert chunk, output
            output += chunk
        process.stdin.write(commands)
    process.stdin.close()
    output += await process.stdout.read()
    await process.wait()
    return output.decode("latin-1")


def says(output: str, name: str) -> str | None:
    found = re.search(rf"^ *{re.escape(name)}: ?(.*?)\s*$", output, re.MULTILINE)
    return found[1] if found else None


def temporary_key(output: str) -> str | None:
    """The group, which OpenSSL 3.5 and later print under another name."""
    return says(output, "Server Temp Key") or says(output, "Peer Temp Key")


@pytest.mark.parametrize("group", ["X25519", "X448"])
async def test_tls_13(router: Router, group: str) -> None:
    output = await s_client(router, "-tls1_3", "-alpn", "smp/1", "-groups", group)
    assert "New, TLSv1.3, Cipher is TLS_CHACHA20_POLY1305_SHA256" in output
    assert says(output, "ALPN protocol") == "smp/1"
    assert temporary_key(output) == f"{group}, {253 if group == 'X25519' else 448} bits"
    assert says(output, "Peer signature type") == "ed25519"


@pytest.mark.parametrize("group", ["X25519", "X448"])
async def test_tls_12(router: Router, group: str) -> None:
    output = await s_client(router, "-tls1_2", "-alpn", "smp/1", "-groups", group)
    assert "New, TLSv1.2, Cipher is ECDHE-ECDSA-CHACHA20-POLY1305" in output
    assert temporary_key(output) == f"{group}, {253 if group == 'X25519' else 448} bits"
    assert "Secure Renegotiation IS supported" in output


@pytest.mark.parametrize("order", ["X448:X25519", "X25519:X448"])
async def test_the_clients_order_of_groups_decides(router: Router, order: str) -> None:
    output = await s_client(router, "-tls1_3", "-groups", order)
    assert (temporary_key(output) or "").startswith(order.split(":")[0])


@pytest.mark.parametrize(
    "options",
    [
        ("-tls1_1", "-cipher", "ALL:@SECLEVEL=0"),
        ("-tls1_3", "-ciphersuites", "TLS_AES_256_GCM_SHA384:TLS_AES_128_GCM_SHA256"),
        ("-tls1_2", "-cipher", "ECDHE-ECDSA-AES256-GCM-SHA384"),
        ("-tls1_2", "-cipher", "ECDHE-RSA-CHACHA20-POLY1305"),
        ("-tls1_3", "-groups", "P-256:P-384:P-521"),
        ("-tls1_2", "-groups", "P-256"),
        ("-tls1_3", "-sigalgs", "ECDSA+SHA256:RSA-PSS+SHA256"),
    ],
    ids=" ".join,
)
async def test_what_is_not_spoken(router: Router, options: tuple[str, ...]) -> None:
    output = await s_client(router, *options)
    assert "Cipher is (NONE)" in output
    assert "alert" in output
    assert router.listener.stats.sessions == 0


async def test_chain_and_request_for_a_client_certificate(router: Router) -> None:
    output = await s_client(router, "-tls1_3", "-showcerts")
    assert output.count("BEGIN CERTIFICATE") == 2
    assert says(output, "Requested Signature Algorithms") == "ed25519:ed448"
    assert "No client certificate CA names sent" in output


async def test_ed448_certificate(start: Start, identity_ed448: Path) -> None:
    output = await s_client(await start(identity_ed448), "-tls1_3")
    assert says(output, "Peer signature type") == "ed448"


@pytest.mark.parametrize(
    ("ca", "online", "connects"),
    [(None, None, True), ("ed448", "ed25519", True), ("ed448", "ed448", False), ("ed25519", "ed448", False)],
)
async def test_clients_that_do_not_know_ed448(
    start: Start, tmp_path: Path, ca: KeyType | None, online: KeyType | None, connects: bool
) -> None:
    """rustls offers these algorithms. None: the key type that Weir chooses."""
    if ca is None or online is None:
        init_identity(tmp_path / "identity", "localhost")
    else:
        init_identity(tmp_path / "identity", "localhost", ca)
        renew_online(tmp_path / "identity", "localhost", online)
    router = await start(tmp_path / "identity")
    output = await s_client(router, "-tls1_3", "-sigalgs", "ed25519:ecdsa_secp256r1_sha256:rsa_pss_rsae_sha256")
    assert (says(output, "Peer signature type") == "ed25519") is connects, output
    assert ("alert handshake failure" in output) is not connects


@pytest.mark.parametrize("version", ["-tls1_3", "-tls1_2"])
async def test_unknown_alpn_gets_alert_120(router: Router, version: str) -> None:
    output = await s_client(router, version, "-alpn", "h2,http/1.1")
    assert "alert no application protocol" in output
    assert "SSL alert number 120" in output


async def test_one_known_alpn_among_others_is_enough(router: Router) -> None:
    output = await s_client(router, "-tls1_3", "-alpn", "h2,smp/1,http/1.1")
    assert says(output, "ALPN protocol") == "smp/1"


@pytest.mark.parametrize("version", ["-tls1_3", "-tls1_2"])
async def test_no_tickets_and_no_resumption(router: Router, version: str, tmp_path: Path) -> None:
    session = tmp_path / "session.pem"
    output = await s_client(router, version, "-sess_out", str(session))
    assert "New Session Ticket" not in output and "TLS session ticket" not in output
    assert says(output, "Session-ID") in (None, "")
    if session.exists():
        again = await s_client(router, version, "-sess_in", str(session))
        assert "Reused" not in again


@pytest.mark.parametrize("version", ["-tls1_3", "-tls1_2"])
async def test_client_chain_that_no_trust_store_knows(router: Router, version: str, tmp_path: Path) -> None:
    own = make_self_signed()
    (tmp_path / "key.pem").write_bytes(key_to_pem(own.key))
    (tmp_path / "cert.pem").write_bytes(certificates_to_pem((own.certificate,)))
    files = ("-cert", str(tmp_path / "cert.pem"), "-key", str(tmp_path / "key.pem"))
    output = await s_client(router, version, "-alpn", "smp/1", *files)
    assert "Cipher is (NONE)" not in output and "alert" not in output


async def test_key_update_of_the_peer(router: Router) -> None:
    """A record of TLS's own is not a block: the session goes on."""
    output = await s_client(router, "-tls1_3", "-alpn", "smp/1", commands=b"K\n", wait=b"####")
    assert "KEYUPDATE" in output
    assert "alert" not in output


@pytest.mark.parametrize("tls12", [False, True], ids=["tls13", "tls12"])
async def test_session_id_is_the_same_on_both_sides(router: Router, tls12: bool) -> None:
    ids = set()
    for _ in range(3):
        async with await SmpClient.connect(router.address, tls12=tls12) as client:
            await client.ping()
            server = router.handlers[-1].connection
            assert client.connection.tls is not None and server._tls is not None
            assert session_id(client.connection.tls) == session_id(server._tls) == client.session.session_id
            ids.add(client.session.session_id)
    assert len(ids) == 3


async def test_peer_chain(router: Router) -> None:
    peer = await raw_peer(router.port)
    assert peer._tls is not None
    assert peer_chain(peer._tls) == router.listener.identity.online.chain
    peer.close()
