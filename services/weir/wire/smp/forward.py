"""The contents of PFWD, RFWD, RRES and PRES, which forward commands through a proxy (protocol, "Proxying sender
commands").

    client ── PFWD(inner box) ──► proxy ── RFWD(outer box(inner box)) ──► relay
    client ◄── PRES(inner box) ── proxy ◄── RRES(outer box(inner box)) ── relay

Client and relay share the secret of the inner box, which is padded to `PROXIED_LENGTH`. Proxy and relay share the
secret of the outer box, which is not padded. The nonce of a response is the nonce of its request, reversed.
"""

from typing import Final, NamedTuple

from weir.crypto.boxes import cb_decrypt, cb_decrypt_no_pad, cb_encrypt, cb_encrypt_no_pad, nonce_of, reverse_nonce
from weir.wire.encoding import Malformed, read_short, read_word16, short, word16
from weir.wire.parts import dh_key, read_dh_key

PROXIED_LENGTH: Final = 16226


class FwdTransmission(NamedTuple):
    """The contents of RFWD's outer box: fwdCorrId, the client's version, its key for this command, the inner box."""

    corr_id: bytes
    version: int
    key: bytes
    transmission: bytes


class FwdResponse(NamedTuple):
    """The contents of RRES's outer box: fwdCorrId and the inner box."""

    corr_id: bytes
    response: bytes


def encode_fwd_transmission(value: FwdTransmission) -> bytes:
    return short(value.corr_id) + word16(value.version) + dh_key(value.key) + value.transmission


def decode_fwd_transmission(data: bytes) -> FwdTransmission | None:
    try:
        corr_id, at = read_short(data, 0)
        version, at = read_word16(data, at)
        key, at = read_dh_key(data, at)
    except Malformed:
        return None
    return FwdTransmission(corr_id, version, key, data[at:])


def encode_fwd_response(value: FwdResponse) -> bytes:
    return short(value.corr_id) + value.response


def decode_fwd_response(data: bytes) -> FwdResponse | None:
    try:
        corr_id, at = read_short(data, 0)
    except Malformed:
        return None
    return FwdResponse(corr_id, data[at:])


def seal_transmission(secret: bytes, corr_id: bytes, batch: bytes) -> bytes:
    """Client: make the inner box of PFWD. `batch` is the content of a block with one transmission."""
    return cb_encrypt(secret, nonce_of(corr_id), batch, PROXIED_LENGTH)


def open_transmission(secret: bytes, corr_id: bytes, box: bytes) -> bytes | None:
    """Relay: open the inner box of RFWD and return the batch."""
    return cb_decrypt(secret, nonce_of(corr_id), box)


def seal_response(secret: bytes, corr_id: bytes, batch: bytes) -> bytes:
    """Relay: make the inner box of the response."""
    return cb_encrypt(secret, reverse_nonce(nonce_of(corr_id)), batch, PROXIED_LENGTH)


def open_response(secret: bytes, corr_id: bytes, box: bytes) -> bytes | None:
    """Client: open the inner box of PRES and return the batch."""
    return cb_decrypt(secret, reverse_nonce(nonce_of(corr_id)), box)


def seal_forward(session_secret: bytes, corr_id: bytes, value: FwdTransmission) -> bytes:
    """Proxy: make the outer box of RFWD. `corr_id` is the correlation id of the proxy's own transmission."""
    return cb_encrypt_no_pad(session_secret, nonce_of(corr_id), encode_fwd_transmission(value))


def open_forward(session_secret: bytes, corr_id: bytes, box: bytes) -> FwdTransmission | None:
    """Relay: open the outer box of RFWD."""
    plain = cb_decrypt_no_pad(session_secret, nonce_of(corr_id), box)
    return None if plain is None else decode_fwd_transmission(plain)


def seal_forward_response(session_secret: bytes, corr_id: bytes, value: FwdResponse) -> bytes:
    """Relay: make the outer box of RRES."""
    return cb_encrypt_no_pad(session_secret, reverse_nonce(nonce_of(corr_id)), encode_fwd_response(value))


def open_forward_response(session_secret: bytes, corr_id: bytes, box: bytes) -> FwdResponse | None:
    """Proxy: open the outer box of RRES."""
    plain = cb_decrypt_no_pad(session_secret, reverse_nonce(nonce_of(corr_id)), box)
    return None if plain is None else decode_fwd_response(plain)
