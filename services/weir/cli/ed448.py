"""The warning about Ed448 certificates, which lock out the clients whose TLS library does not know Ed448.

Such a library cannot verify the handshake of a router whose online certificate has an Ed448 key. Go's crypto/tls also
announces which signatures it accepts inside certificates, and OpenSSL then has none to offer if the CA's key is Ed448.
The address contains the fingerprint of the CA, so a CA with an Ed448 key can only be replaced with the address.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from weir.crypto.identity import Identity

_SEE = "see docs/certificates.md"


def ed448_warning(identity: Identity) -> str | None:
    """Name the clients that cannot connect. None if no key is Ed448."""
    from weir.crypto.certificates import certificate_key

    ca = certificate_key(identity.chain[1])
    if ca is not None and ca[0] == "ed448":
        if identity.key.type == "ed448":
            return (
                "the CA and the online certificate have Ed448 keys: clients that use Go's crypto/tls or rustls cannot "
                f"connect. An Ed25519 online certificate (`weir smp cert`) serves rustls, but not Go; {_SEE}"
            )
        return f"the CA has an Ed448 key: clients that use Go's crypto/tls cannot connect; {_SEE}"
    if identity.key.type == "ed448":
        return (
            "the online certificate has an Ed448 key: clients that use Go's crypto/tls or rustls cannot connect. "
            f"`weir smp cert` makes an Ed25519 one; {_SEE}"
        )
    return None
