"""The certificate with which this router is a service of an SMP server."""

import asyncio
import os
from datetime import timedelta

from cryptography import x509

from tests.notifier.subscriber.replicas import Replicas
from weir.notifier.subscriber.credentials import service_credentials
from weir.wire.address import ServerHost
from weir.wire.smp.commands import ServiceRole


async def test_made_once_for_each_server_and_kept(replicas: Replicas) -> None:
    one, other = (await replicas.add()).store, (await replicas.add()).store
    ids = [await one.servers.ensure(ServerHost((b"smp.example",), b"", os.urandom(32))) for _ in range(2)]
    assert await one.servers.credentials(ids[0]) is None
    both = await asyncio.gather(*(service_credentials(store.servers, ids[0]) for store in (one, other)))
    assert both[0] == both[1], "the first replica's certificate counts for both"
    assert await service_credentials(other.servers, ids[0]) == both[0]
    assert (await service_credentials(one.servers, ids[1])).cert_hash != both[0].cert_hash
    credentials = both[0]
    assert credentials.role is ServiceRole.NOTIFIER
    certificate = x509.load_der_x509_certificate(credentials.chain[0])
    assert certificate.issuer == certificate.subject
    valid = certificate.not_valid_after_utc - certificate.not_valid_before_utc
    assert abs(valid / timedelta(hours=1) - 24 * 999_999) <= 24


async def test_the_key_is_sealed_in_redis(replicas: Replicas) -> None:
    store = (await replicas.add()).store
    server_id = await store.servers.ensure(ServerHost((b"smp.example",), b"", os.urandom(32)))
    credentials = await service_credentials(store.servers, server_id)
    record = await store.core.read_registry(b"HGETALL", store.core.keys.server(server_id))
    assert record and not any(credentials.key.private in value or b"PRIVATE KEY" in value for value in record)
