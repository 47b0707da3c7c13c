"""TLS contexts of the routers and their clients (protocol, "Transport connection": TLS 1.3 and 1.2, one suite each)."""

import os
import ssl
from collections.abc import Sequence

from weir.transport import openssl

_SUITE_13 = "TLS_CHACHA20_POLY1305_SHA256"
_SUITE_12 = "ECDHE-ECDSA-CHACHA20-POLY1305"
_GROUPS = "X25519:X448"
_SIGNATURES = "ed25519:ed448"
_MAX_CHAIN_BYTES = 16384


def server_context(
    chain: Sequence[bytes], key_pem: bytes, alpn: str, *, ask_client_cert: bool = True
) -> ssl.SSLContext:
    """For `chain` (DER, leaf first) and the leaf's private key (PKCS #8 PEM)."""
    context = _context(ssl.PROTOCOL_TLS_SERVER, alpn)
    # A resumed session would give the two sides different Finished messages, and so different session ids.
    context.num_tickets = 0
    context.options |= ssl.OP_NO_TICKET
    # The client's order of groups decides.
    context.options &= ~ssl.OP_CIPHER_SERVER_PREFERENCE
    _load(context, chain, key_pem)
    if ask_client_cert:
        context.verify_mode = ssl.CERT_OPTIONAL
    return context


def client_context(
    alpn: str | None, *, chain: Sequence[bytes] = (), key_pem: bytes = b"", tls12: bool = False
) -> ssl.SSLContext:
    """`chain` and its key are a service's certificate; other clients present none."""
    context = _context(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.options |= ssl.OP_NO_TICKET
    if tls12:
        context.maximum_version = ssl.TLSVersion.TLSv1_2
    if alpn is not None:
        context.set_alpn_protocols([alpn])
    if chain:
        _load(context, chain, key_pem)
    return context


def peer_chain(tls: ssl.SSLObject) -> tuple[bytes, ...]:
    """The certificates the peer presented, leaf first, as DER; empty when it presented none."""
    if tls.getpeercert(binary_form=True) is None:
        return ()
    if hasattr(tls, "get_unverified_chain"):
        return tuple(tls.get_unverified_chain())
    # Public from Python 3.13 on; the same call, on the object underneath, before.
    certificates = tls._sslobj.get_unverified_chain()  # type: ignore[attr-defined]
    return tuple(ssl.PEM_cert_to_DER_cert(certificate.public_bytes()) for certificate in certificates)


def session_id(tls: ssl.SSLObject) -> bytes:
    """The client's Finished message (tls-unique), the same on both sides because nothing is ever resumed."""
    binding = tls.get_channel_binding("tls-unique")
    if binding is None:
        raise ssl.SSLError("the handshake is not finished")
    return binding


def _context(protocol: int, alpn: str | None = None) -> ssl.SSLContext:
    context = openssl.new_context(
        protocol,
        suites13=_SUITE_13,
        groups=_GROUPS,
        signatures=_SIGNATURES,
        max_chain_bytes=_MAX_CHAIN_BYTES,
        alpn=alpn,
    )
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_COMPRESSION
    context.set_ciphers(_SUITE_12)
    return context


def _load(context: ssl.SSLContext, chain: Sequence[bytes], key_pem: bytes) -> None:
    # load_cert_chain takes a path; an anonymous file keeps the key off the disk.
    pem = key_pem + "".join(ssl.DER_cert_to_PEM_cert(der) for der in chain).encode()
    descriptor = os.memfd_create("weir", os.MFD_CLOEXEC)
    try:
        os.write(descriptor, pem)
        context.load_cert_chain(f"/proc/self/fd/{descriptor}")
    finally:
        os.close(descriptor)
