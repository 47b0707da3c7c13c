"""The key pair of a service.

The certificate is its own CA, and its fingerprint is the service's identity. So a service gets a new certificate by
rotating to a new identity.
"""

from __future__ import annotations

from weir.crypto import certificates
from weir.crypto.keys import KeyType
from weir.crypto.pem import certificates_from_pem, certificates_to_pem, key_to_pem
from weir_operator.kinds import names
from weir_operator.kinds.secrets import Data, decode, encode, fingerprint_text


def make(key_type: KeyType, common_name: str, days: int) -> dict[str, str]:
    """Data of a new Secret, in the names that TLS tools know."""
    made = certificates.make_self_signed(common_name, key_type, days)
    return {
        names.TLS_CERT: encode(certificates_to_pem((made.certificate,))),
        names.TLS_KEY: encode(key_to_pem(made.key)),
    }


def fingerprint(data: Data) -> str | None:
    pem = decode(data, names.TLS_CERT)
    try:
        chain = certificates_from_pem(pem or b"")
    except ValueError:
        return None
    parts = certificates.split_chain(chain)
    return None if isinstance(parts, certificates.ChainError) else fingerprint_text(parts.identity)
