"""The login: a service account whose token changes, a kubeconfig, and what kopf gets of either."""

from __future__ import annotations

import datetime
import ipaddress
import ssl
from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace

import kopf
import pytest
import pytest_asyncio
from aiohttp import web
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from kubernetes.aio.config import incluster_config

from weir_operator.kinds.resources import RESOURCES
from weir_operator.kube.api import Api
from weir_operator.kube.login import Login

LOGIN = Login("weir-operator")


class Server:
    """An HTTPS server that accepts one token."""

    def __init__(self) -> None:
        self.accepted = "first"
        self.tokens: list[str] = []

    async def handle(self, request: web.Request) -> web.Response:
        token = request.headers["Authorization"].removeprefix("bearer ")
        self.tokens.append(token)
        return web.json_response({}, status=200 if token == self.accepted else 401)


def _certificate(directory: Path) -> tuple[Path, Path]:
    """A certificate for 127.0.0.1, which is its own CA, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "test")])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), True)
        .sign(key, hashes.SHA256())
    )
    certificate_path, key_path = directory / "ca.crt", directory / "server.key"
    certificate_path.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    key_path.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return certificate_path, key_path


@pytest_asyncio.fixture
async def server(tmp_path: Path, unused_tcp_port: int, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Server]:
    certificate, key = _certificate(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    made = Server()
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", made.handle)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", unused_tcp_port, ssl_context=context).start()
    monkeypatch.setattr(incluster_config, "SERVICE_CERT_FILENAME", str(certificate))
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "127.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", str(unused_tcp_port))
    monkeypatch.delenv("KUBECONFIG", raising=False)
    yield made
    await runner.cleanup()


@pytest.fixture
def token(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file with the token of a pod's service account."""
    path = tmp_path / "token"
    path.write_text("first")
    monkeypatch.setattr(incluster_config, "SERVICE_TOKEN_FILENAME", str(path))
    return path


async def test_a_service_accounts_token_is_read_again(
    server: Server, token: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    api = Api(LOGIN, RESOURCES, "weir-operator")
    await api.get("Secret", "ns", "s")
    token.write_text("second")
    await api.get("Secret", "ns", "s")

    # The library keeps a token for a minute. The clock that it reads is a minute and a half later.
    server.accepted = "second"
    later = datetime.datetime.now() + datetime.timedelta(seconds=90)
    clock = SimpleNamespace(datetime=SimpleNamespace(now=lambda: later), timedelta=datetime.timedelta)
    monkeypatch.setattr(incluster_config, "datetime", clock)
    await api.get("Secret", "ns", "s")
    await api.close()
    assert server.tokens == ["first", "first", "second"]


async def test_a_token_that_is_refused_is_read_again_at_once(server: Server, token: Path) -> None:
    api = Api(LOGIN, RESOURCES, "weir-operator")
    await api.get("Secret", "ns", "s")
    token.write_text("second")
    server.accepted = "second"
    assert await api.get("Secret", "ns", "s") == {}
    await api.close()
    assert server.tokens == ["first", "first", "second"]


async def test_kopf_gets_the_same_server_and_the_token_of_now(server: Server, token: Path) -> None:
    counted: list[tuple[str, str]] = []
    login = Login("weir-operator", lambda verb, code: counted.append((verb, code)))
    for expected in ("first", "second"):
        token.write_text(expected)
        found = await login.open_session()
        assert found.server is not None
        async with found.aiohttp_session.get(found.server + "/api?watch=true"):
            pass
        await found.aiohttp_session.close()
    assert server.tokens == ["first", "second"]
    assert counted == [("WATCH", "200"), ("WATCH", "401")]


async def test_no_login_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    broken = tmp_path / "kubeconfig"
    broken.write_text("apiVersion: v1\n")
    for path in (tmp_path / "none", broken):
        monkeypatch.setenv("KUBECONFIG", str(path))
        with pytest.raises(kopf.LoginError) as refused:
            await LOGIN.open_client()
        assert "kubeconfig" in str(refused.value)
        assert "\n" not in str(refused.value)
