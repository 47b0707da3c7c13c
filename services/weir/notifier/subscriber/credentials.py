"""The certificate with which this router is a service of one SMP server, made on first use.

Each SMP server gets a certificate of its own, so that servers cannot tell that they have the same notification router.
"""

from __future__ import annotations

from typing import Final

from weir.crypto.certificates import make_self_signed
from weir.crypto.pem import certificates_from_pem, certificates_to_pem, key_from_pem, key_to_pem
from weir.notifier.store.records import ServiceKeys
from weir.notifier.store.servers import Servers
from weir.transport.smp import ServiceCredentials
from weir.wire.smp.commands import ServiceRole

_DAYS: Final = 999_999  # a new certificate would be a new service, and one NSUB for each of its queues


async def service_credentials(servers: Servers, server_id: bytes) -> ServiceCredentials:
    """Raises Unavailable."""
    keys = await servers.credentials(server_id)
    if keys is None:
        keys = await servers.set_credentials(server_id, _make())
    return ServiceCredentials(
        ServiceRole.NOTIFIER, certificates_from_pem(keys.certificate), key_from_pem(keys.private_key)
    )


def _make() -> ServiceKeys:
    issued = make_self_signed(days=_DAYS)
    return ServiceKeys(certificates_to_pem((issued.certificate,)), key_to_pem(issued.key))
