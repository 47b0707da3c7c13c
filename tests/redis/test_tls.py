"""rediss://: TLS to Redis, where the server can."""

from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from tests.router.store.harness import open_edge
from tests.support.ports import free_port
from tests.support.redis import DEBIAN, discard, start_server
from weir.redis.errors import StoreError
from weir.router.store.records import MsgEvent, Owner


def certificate(directory: Path) -> tuple[Path, Path]:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "redis")])
    now = datetime.now(UTC)
    cert = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    cert_file, key_file = directory / "cert.pem", directory / "key.pem"
    cert_file.write_bytes(cert.public_bytes(serialization.Encoding.PEM))
    key_file.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return cert_file, key_file


async def test_tls(tmp_path: Path) -> None:
    if DEBIAN is None:
        pytest.skip("no Redis with TLS is installed")
    cert, key = certificate(tmp_path)
    port = free_port()
    options = {
        "tls-port": str(port),
        "tls-cert-file": str(cert),
        "tls-key-file": str(key),
        "tls-ca-cert-file": str(cert),
        "tls-auth-clients": "no",
    }
    try:
        node = start_server(DEBIAN, options=options)
    except StoreError:
        pytest.skip("the installed Redis was built without TLS")
    try:
        a, b = [await open_edge(f"rediss://127.0.0.1:{port}?ca={cert}") for _ in range(2)]
        rec = await a.new(owner=Owner(1, 1))
        await b.send(rec, body=b"x" * 16122)
        await a.until(lambda: bool(a.events))
        (event,) = a.events
        assert isinstance(event, MsgEvent)
        assert await a.body(rec.rcv_id, event.entry.msg_id) == b"x" * 16122
        await a.close()
        await b.close()
        unchecked = await open_edge(f"rediss://127.0.0.1:{port}?verify=no")
        await unchecked.close()
        with pytest.raises(StoreError):
            await open_edge(f"rediss://127.0.0.1:{port}", connect_timeout=5.0)
    finally:
        discard(node)
