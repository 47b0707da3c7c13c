"""The stand-in of a push service: another implementation pushes through it, and wrong requests are refused."""

import asyncio
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import requests
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from pywebpush import webpush  # type: ignore[import-untyped]

from weir.bench.standins.authority import Authority
from weir.bench.standins.web_push import Subscriber, WebPush
from weir.crypto import p256
from weir.crypto.web_push import encrypt

KEY = p256.generate()


@pytest.fixture
async def standin(tmp_path: Path) -> AsyncIterator[WebPush]:
    authority = Authority()
    (tmp_path / "ca.pem").write_bytes(authority.pem)
    standin = WebPush(authority, vapid=KEY.public_key())
    await standin.start()
    yield standin
    await standin.close()


async def test_pywebpush_delivers(standin: WebPush, tmp_path: Path) -> None:
    subscriber = standin.subscribe()
    keys = {"auth": subscriber.token.auth, "p256dh": subscriber.token.p256dh}
    key_file = tmp_path / "vapid.pem"
    key_file.write_bytes(KEY.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    session = requests.Session()
    session.trust_env = False  # the environment may name other certificates
    session.verify = str(tmp_path / "ca.pem")
    response = await asyncio.to_thread(
        webpush,
        {
            "endpoint": standin.origin + subscriber.token.path,
            "keys": {name: p256.base64url(value).decode() for name, value in keys.items()},
        },
        "hello",
        vapid_private_key=str(key_file),
        vapid_claims={"sub": "mailto:a@example.org"},
        requests_session=session,
        ttl=60,
    )
    assert response.status_code == 201
    [arrived] = standin.program.arrived
    assert (arrived.target, arrived.plain) == (standin.target(subscriber), b"hello")


def _headers(standin: WebPush, *, key: p256.PrivateKey = KEY, **claims: Any) -> dict[str, str]:
    stated = {"aud": standin.origin, "exp": int(time.time()) + 600, **claims}
    token = p256.web_token(key, {"typ": "JWT"}, stated).decode()
    point = p256.base64url(p256.point(key.public_key())).decode()
    return {"TTL": "0", "Content-Encoding": "aes128gcm", "Authorization": f"vapid t={token},k={point}"}


async def _post(
    standin: WebPush, path: Path, subscriber: Subscriber, headers: dict[str, str], body: bytes | None = None
) -> int:
    receiver = p256.public_key(subscriber.token.p256dh)
    assert receiver is not None
    body = encrypt(receiver, subscriber.token.auth, b"x") if body is None else body
    url = standin.origin + subscriber.token.path
    ca = str(path / "ca.pem")
    response = await asyncio.to_thread(requests.post, url, data=body, headers=headers, verify=ca, timeout=10)
    return response.status_code


async def test_requests_that_a_service_refuses(standin: WebPush, tmp_path: Path) -> None:
    one = standin.subscribe()
    good = _headers(standin)
    unknown = one._replace(token=one.token._replace(path="/push/unknown"))
    assert await _post(standin, tmp_path, one, good) == 201
    assert await _post(standin, tmp_path, unknown, good) == 404
    for without, status in (("TTL", 400), ("Content-Encoding", 400), ("Authorization", 401)):
        assert await _post(standin, tmp_path, one, {k: v for k, v in good.items() if k != without}) == status
    assert await _post(standin, tmp_path, one, good | {"Urgency": "now"}) == 400
    assert await _post(standin, tmp_path, one, good, bytes(4097)) == 413
    assert await _post(standin, tmp_path, one, good, bytes(200)) == 400
    for wrong in (
        _headers(standin, aud="https://elsewhere.example"),
        _headers(standin, exp=int(time.time()) - 1),
        _headers(standin, exp=int(time.time()) + 25 * 3600),
        _headers(standin, key=p256.generate()),
    ):
        assert await _post(standin, tmp_path, one, wrong) == 403
    assert len(standin.program.arrived) == 1
