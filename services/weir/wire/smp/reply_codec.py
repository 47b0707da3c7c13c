"""SMP replies and events as bytes, both ways (protocol, "Router messages")."""

from collections.abc import Callable
from typing import Any, Final

from weir.wire.encoding import (
    LENGTH,
    Malformed,
    boolean,
    expect_end,
    int64,
    maybe,
    read_boolean,
    read_byte,
    read_bytes,
    read_int64,
    read_maybe,
    read_short,
    short,
)
from weir.wire.error_codec import encode_error, for_version, read_error
from weir.wire.errors import CommandError, ErrorType, Simple
from weir.wire.parts import dh_key, read_dh_key, read_version_range, version_range
from weir.wire.smp import ids_hash
from weir.wire.smp.commands import QueueMode
from weir.wire.smp.parts import cert_chain_key, link_data, read_cert_chain_key, read_link_data
from weir.wire.smp.queue_info import QueueInfo
from weir.wire.smp.replies import (
    ALLS,
    DELD,
    END,
    ENDS,
    ERR,
    IDS,
    INFO,
    LNK,
    MSG,
    NID,
    NMSG,
    OK,
    PKEY,
    PONG,
    PRES,
    RNAME,
    RRES,
    SOK,
    SOKS,
    Reply,
    ServerNtfCreds,
)
from weir.wire.tagged import Reader, tagged_decoder
from weir.wire.versions import (
    DELETED_EVENT,
    NEW_NTF_CREDS,
    RCV_SERVICE,
    SERVICE_CERTS,
    SHORT_LINKS,
    SND_AUTH_KEY,
)

_MODES: Final = {mode.value[0]: mode for mode in QueueMode}

# --- encoding ---


def _mode(mode: QueueMode) -> bytes:
    return mode.value


def _server_creds(creds: ServerNtfCreds) -> bytes:
    return short(creds.ntf_id) + dh_key(creds.dh_key)


def _ids(version: int, reply: IDS) -> bytes:
    """ "IDS" SP ids and key, then by version: sndSecure; queueMode, linkId; serviceId; notifier's id and key."""
    out = b"IDS " + short(reply.rcv_id) + short(reply.snd_id) + dh_key(reply.dh_key)
    if version < SND_AUTH_KEY:
        return out
    if version < SHORT_LINKS:
        return out + boolean(reply.queue_mode is QueueMode.MESSAGING)
    out += maybe(reply.queue_mode, _mode) + maybe(reply.link_id, short)
    if version < SERVICE_CERTS:
        return out
    out += maybe(reply.service_id, short)
    return out if version < NEW_NTF_CREDS else out + maybe(reply.ntf_creds, _server_creds)


def _count_and_hash(tag: bytes, version: int, reply: SOKS | ENDS) -> bytes:
    """Version 19 added idsHash to the count."""
    out = tag + int64(reply.count)
    return out if version < RCV_SERVICE else out + short(reply.ids_hash)


_SIMPLE_ERRORS: Final[dict[ErrorType, bytes]] = {
    error: b"ERR " + encode_error(error) for error in (*Simple, *CommandError)
}


def _err(version: int, reply: ERR) -> bytes:
    error = reply.error
    if isinstance(error, (Simple, CommandError)):
        return _SIMPLE_ERRORS[error]
    return b"ERR " + encode_error(for_version(version, error))


_BARE: Final[dict[bytes, Reply]] = {
    b"OK": OK(),
    b"PONG": PONG(),
    b"END": END(),
    b"DELD": DELD(),
    b"ALLS": ALLS(),
}

_ENCODERS: Final[dict[type, Callable[[int, Any], bytes]]] = {
    OK: lambda _, __: b"OK",
    PONG: lambda _, __: b"PONG",
    END: lambda _, __: b"END",
    ALLS: lambda _, __: b"ALLS",
    DELD: lambda version, _: b"DELD" if version >= DELETED_EVENT else b"END",
    ERR: _err,
    IDS: _ids,
    LNK: lambda _, reply: b"LNK " + short(reply.snd_id) + link_data(reply.data),
    SOK: lambda version, reply: b"SOK " + maybe(reply.service_id, short) if version >= SERVICE_CERTS else b"OK",
    SOKS: lambda version, reply: _count_and_hash(b"SOKS ", version, reply),
    ENDS: lambda version, reply: _count_and_hash(b"ENDS ", version, reply),
    MSG: lambda _, reply: b"".join((b"MSG ", LENGTH[len(reply.msg_id)], reply.msg_id, reply.body)),
    NID: lambda _, reply: b"NID " + short(reply.ntf_id) + dh_key(reply.dh_key),
    NMSG: lambda _, reply: b"NMSG " + reply.nonce + short(reply.meta),
    PKEY: lambda _, reply: (
        b"PKEY " + short(reply.session_id) + version_range(reply.versions) + cert_chain_key(reply.cert_key)
    ),
    RRES: lambda _, reply: b"RRES " + reply.response,
    PRES: lambda _, reply: b"PRES " + reply.response,
    INFO: lambda _, reply: b"INFO " + reply.json,
    RNAME: lambda _, reply: b"RNAME " + reply.json,
}


def encode_reply(version: int, reply: Reply) -> bytes:
    return _ENCODERS[type(reply)](version, reply)


# --- decoding: see `Reader` for what each reader takes ---


def _read_mode(data: bytes, at: int) -> tuple[QueueMode, int]:
    char, at = read_byte(data, at)
    mode = _MODES.get(char)
    if mode is None:
        raise Malformed
    return mode, at


def _read_server_creds(data: bytes, at: int) -> tuple[ServerNtfCreds, int]:
    ntf_id, at = read_short(data, at)
    ntf_dh_key, at = read_dh_key(data, at)
    return ServerNtfCreds(ntf_id, ntf_dh_key), at


def _read_ids(version: int, data: bytes, at: int) -> IDS:
    rcv_id, at = read_short(data, at)
    snd_id, at = read_short(data, at)
    srv_dh_key, at = read_dh_key(data, at)
    mode: QueueMode | None = None
    link_id: bytes | None = None
    service_id: bytes | None = None
    creds: ServerNtfCreds | None = None
    if version >= SHORT_LINKS:
        mode, at = read_maybe(data, at, _read_mode)
        link_id, at = read_maybe(data, at, read_short)
    elif version >= SND_AUTH_KEY:
        snd_secure, at = read_boolean(data, at)
        mode = QueueMode.MESSAGING if snd_secure else QueueMode.CONTACT
    if version >= SERVICE_CERTS:
        service_id, at = read_maybe(data, at, read_short)
    if version >= NEW_NTF_CREDS:
        creds, at = read_maybe(data, at, _read_server_creds)
    expect_end(data, at)
    return IDS(rcv_id, snd_id, srv_dh_key, mode, link_id, service_id, creds)


def _read_lnk(_: int, data: bytes, at: int) -> LNK:
    snd_id, at = read_short(data, at)
    link, at = read_link_data(data, at)
    expect_end(data, at)
    return LNK(snd_id, link)


def _read_sok(_: int, data: bytes, at: int) -> SOK:
    service_id, at = read_maybe(data, at, read_short)
    expect_end(data, at)
    return SOK(service_id)


def _read_count_and_hash(version: int, data: bytes, at: int) -> tuple[int, bytes]:
    count, at = read_int64(data, at)
    queues_hash = ids_hash.EMPTY
    if version >= RCV_SERVICE:
        queues_hash, at = read_short(data, at)
    expect_end(data, at)
    return count, queues_hash


def _read_msg(_: int, data: bytes, at: int) -> MSG:
    msg_id, at = read_short(data, at)
    return MSG(msg_id, data[at:])


def _read_nid(_: int, data: bytes, at: int) -> NID:
    creds, at = _read_server_creds(data, at)
    expect_end(data, at)
    return NID(creds.ntf_id, creds.dh_key)


def _read_nmsg(_: int, data: bytes, at: int) -> NMSG:
    nonce, at = read_bytes(data, at, 24)
    meta, at = read_short(data, at)
    expect_end(data, at)
    return NMSG(nonce, meta)


def _read_pkey(_: int, data: bytes, at: int) -> PKEY:
    session_id, at = read_short(data, at)
    versions, at = read_version_range(data, at)
    cert_key, at = read_cert_chain_key(data, at)
    expect_end(data, at)
    return PKEY(session_id, versions, cert_key)


def _read_info(_: int, data: bytes, at: int) -> INFO:
    text = data[at:]
    if QueueInfo.from_json(text) is None:
        raise Malformed
    return INFO(text)


_READERS: Final[dict[bytes, Reader[Reply]]] = {
    b"MSG": _read_msg,
    b"SOK": _read_sok,
    b"ERR": lambda _, data, at: ERR(read_error(data, at)),
    b"IDS": _read_ids,
    b"LNK": _read_lnk,
    b"SOKS": lambda version, data, at: SOKS(*_read_count_and_hash(version, data, at)),
    b"ENDS": lambda version, data, at: ENDS(*_read_count_and_hash(version, data, at)),
    b"NID": _read_nid,
    b"NMSG": _read_nmsg,
    b"PKEY": _read_pkey,
    b"RRES": lambda _, data, at: RRES(data[at:]),
    b"PRES": lambda _, data, at: PRES(data[at:]),
    b"INFO": _read_info,
    b"RNAME": lambda _, data, at: RNAME(data[at:]),
}
_decode: Final = tagged_decoder(_BARE, _READERS)


def decode_reply(version: int, data: bytes) -> Reply | CommandError:
    """Decode a reply. The error is UNKNOWN for an unknown tag and SYNTAX for wrong parameters."""
    return _decode(version, data)
