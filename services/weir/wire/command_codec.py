"""SMP client commands as bytes, both ways (protocol, "SMP commands").

`SEND`, `ACK` and the commands without parameters are the hot ones: they are decoded by slicing.
"""

import re
from collections.abc import Callable
from typing import Any, Final

from weir.wire import ids_hash
from weir.wire.commands import (
    ACK,
    DEL,
    GET,
    KEY,
    LDEL,
    LGET,
    LKEY,
    LSET,
    NDEL,
    NEW,
    NKEY,
    NSUB,
    NSUBS,
    OFF,
    PFWD,
    PING,
    PRXY,
    QUE,
    RFWD,
    RKEY,
    RSLV,
    SEND,
    SKEY,
    SUB,
    SUBS,
    Command,
    ContactReq,
    LinkData,
    MessagingReq,
    NewNtfCreds,
    QueueReq,
)
from weir.wire.encoding import (
    Malformed,
    boolean,
    end_of,
    int64,
    items,
    maybe,
    read_boolean,
    read_byte,
    read_int64,
    read_items,
    read_maybe,
    read_short,
    read_word16,
    short,
    word16,
)
from weir.wire.errors import CommandError
from weir.wire.parts import (
    dh_key,
    link_data,
    read_auth_key,
    read_basic_auth,
    read_dh_key,
    read_link_data,
    read_server_host,
    server_host,
)
from weir.wire.versions import NEW_NTF_CREDS, RCV_SERVICE, SHORT_LINKS, SND_AUTH_KEY

_UNKNOWN: Final = CommandError.UNKNOWN
_SYNTAX: Final = CommandError.SYNTAX


# --- encoding ---


def _snd_link(value: tuple[bytes, LinkData]) -> bytes:
    return short(value[0]) + link_data(value[1])


def _link(value: tuple[bytes, tuple[bytes, LinkData]]) -> bytes:
    return short(value[0]) + _snd_link(value[1])


def _queue_req(req: QueueReq) -> bytes:
    """queueReqData: M or C, and what the client brings along."""
    if isinstance(req, MessagingReq):
        return b"M" + maybe(req.data, _snd_link)
    return b"C" + maybe(req.data, _link)


def _ntf_creds(creds: NewNtfCreds) -> bytes:
    return short(creds.auth_key) + dh_key(creds.dh_key)


def _new(version: int, cmd: NEW) -> bytes:
    """ "NEW" SP keys, then by version: `A` auth and mode; auth, mode, sndSecure; … queueReqData; … ntfCreds."""
    keys = b"NEW " + short(cmd.rcv_auth_key) + dh_key(cmd.rcv_dh_key)
    mode = b"S" if cmd.subscribe else b"C"
    if version < SND_AUTH_KEY:
        auth = b"" if cmd.basic_auth is None else b"A" + short(cmd.basic_auth)
        return keys + auth + mode
    keys += maybe(cmd.basic_auth, short) + mode
    if version < SHORT_LINKS:
        return keys + boolean(isinstance(cmd.queue_req, MessagingReq))
    keys += b"0" if cmd.queue_req is None else b"1" + _queue_req(cmd.queue_req)
    return keys if version < NEW_NTF_CREDS else keys + maybe(cmd.ntf_creds, _ntf_creds)


def _subs(tag: bytes, version: int, cmd: SUBS | NSUBS) -> bytes:
    """From version 19 with count and idsHash, bare before."""
    return tag if version < RCV_SERVICE else tag + b" " + int64(cmd.count) + short(cmd.ids_hash)


_BARE: Final[dict[bytes, Command]] = {
    b"SUB": SUB(),
    b"LDEL": LDEL(),
    b"NDEL": NDEL(),
    b"GET": GET(),
    b"OFF": OFF(),
    b"DEL": DEL(),
    b"QUE": QUE(),
    b"PING": PING(),
    b"LGET": LGET(),
    b"NSUB": NSUB(),
}

_ENCODERS: Final[dict[type, Callable[[int, Any], bytes]]] = {
    NEW: _new,
    SUBS: lambda version, cmd: _subs(b"SUBS", version, cmd),
    NSUBS: lambda version, cmd: _subs(b"NSUBS", version, cmd),
    KEY: lambda _, cmd: b"KEY " + short(cmd.key),
    RKEY: lambda _, cmd: b"RKEY " + items(tuple(short(key) for key in cmd.keys)),
    LSET: lambda _, cmd: b"LSET " + short(cmd.link_id) + link_data(cmd.data),
    NKEY: lambda _, cmd: b"NKEY " + short(cmd.auth_key) + dh_key(cmd.dh_key),
    ACK: lambda _, cmd: b"ACK " + short(cmd.msg_id),
    SKEY: lambda _, cmd: b"SKEY " + short(cmd.key),
    SEND: lambda _, cmd: (b"SEND T " if cmd.notification else b"SEND F ") + cmd.body,
    LKEY: lambda _, cmd: b"LKEY " + short(cmd.key),
    PRXY: lambda _, cmd: b"PRXY " + server_host(cmd.server) + maybe(cmd.basic_auth, short),
    PFWD: lambda _, cmd: b"PFWD " + word16(cmd.version) + dh_key(cmd.key) + cmd.transmission,
    RFWD: lambda _, cmd: b"RFWD " + cmd.transmission,
    RSLV: lambda _, cmd: b"RSLV " + cmd.domain,
} | {type(cmd): (lambda _, __, tag=tag: tag) for tag, cmd in _BARE.items()}


def encode_command(version: int, cmd: Command) -> bytes:
    return _ENCODERS[type(cmd)](version, cmd)


# --- decoding: each takes the whole command and the position after "TAG " ---


def _read_snd_link(data: bytes, at: int) -> tuple[tuple[bytes, LinkData], int]:
    snd_id, at = read_short(data, at)
    link, at = read_link_data(data, at)
    return (snd_id, link), at


def _read_link(data: bytes, at: int) -> tuple[tuple[bytes, tuple[bytes, LinkData]], int]:
    link_id, at = read_short(data, at)
    rest, at = _read_snd_link(data, at)
    return (link_id, rest), at


def _read_queue_req(data: bytes, at: int) -> tuple[QueueReq, int]:
    mode, at = read_byte(data, at)
    if mode == 0x4D:  # M
        messaging, at = read_maybe(data, at, _read_snd_link)
        return MessagingReq(messaging), at
    if mode == 0x43:  # C
        contact, at = read_maybe(data, at, _read_link)
        return ContactReq(contact), at
    raise Malformed


def _read_ntf_creds(data: bytes, at: int) -> tuple[NewNtfCreds, int]:
    auth_key, at = read_auth_key(data, at)
    ntf_dh_key, at = read_dh_key(data, at)
    return NewNtfCreds(auth_key, ntf_dh_key), at


def _read_mode(data: bytes, at: int) -> tuple[bool, int]:
    mode, at = read_byte(data, at)
    if mode not in b"SC":
        raise Malformed
    return mode == 0x53, at


def _read_new(version: int, data: bytes, at: int) -> NEW:
    auth_key, at = read_auth_key(data, at)
    rcv_dh_key, at = read_dh_key(data, at)
    auth: bytes | None = None
    req: QueueReq | None = None
    creds: NewNtfCreds | None = None
    if version >= SND_AUTH_KEY:
        auth, at = read_maybe(data, at, read_basic_auth)
    elif data[at : at + 1] == b"A":
        auth, at = read_basic_auth(data, at + 1)
    subscribe, at = _read_mode(data, at)
    if version >= SHORT_LINKS:
        req, at = read_maybe(data, at, _read_queue_req)
    elif version >= SND_AUTH_KEY:
        snd_secure, at = read_boolean(data, at)
        req = MessagingReq() if snd_secure else ContactReq()
    if version >= NEW_NTF_CREDS:
        creds, at = read_maybe(data, at, _read_ntf_creds)
    end_of(data, at)
    return NEW(auth_key, rcv_dh_key, auth, subscribe, req, creds)


def _read_counted(data: bytes, at: int) -> tuple[int, bytes]:
    count, at = read_int64(data, at)
    idsh, at = read_short(data, at)
    end_of(data, at)
    return count, idsh


def _read_key(data: bytes, at: int) -> bytes:
    key, at = read_auth_key(data, at)
    end_of(data, at)
    return key


def _read_rkey(_: int, data: bytes, at: int) -> RKEY:
    keys, at = read_items(data, at, read_auth_key)
    end_of(data, at)
    return RKEY(keys)


def _read_lset(_: int, data: bytes, at: int) -> LSET:
    link_id, at = read_short(data, at)
    link, at = read_link_data(data, at)
    end_of(data, at)
    return LSET(link_id, link)


def _read_nkey(_: int, data: bytes, at: int) -> NKEY:
    creds, at = _read_ntf_creds(data, at)
    end_of(data, at)
    return NKEY(creds.auth_key, creds.dh_key)


def _read_ack(_: int, data: bytes, at: int) -> ACK:
    msg_id, at = read_short(data, at)
    end_of(data, at)
    return ACK(msg_id)


def _read_send(_: int, data: bytes, at: int) -> SEND:
    command = decode_send(data, at, len(data))
    if command is None:
        raise Malformed
    return command


def _read_prxy(_: int, data: bytes, at: int) -> PRXY:
    server, at = read_server_host(data, at)
    auth, at = read_maybe(data, at, read_basic_auth)
    end_of(data, at)
    return PRXY(server, auth)


def _read_pfwd(_: int, data: bytes, at: int) -> PFWD:
    version, at = read_word16(data, at)
    key, at = read_dh_key(data, at)
    return PFWD(version, key, data[at:])


_DOMAIN_TOKEN = re.compile(rb"[^ \t\n\v\f\r]+")
_LABEL = re.compile(rb"[A-Za-z0-9]+(?:-[A-Za-z0-9]+)*")


def _read_rslv(_: int, data: bytes, at: int) -> RSLV:
    """Dot-separated labels, at least two, 253 bytes in all; what follows a space is for later versions."""
    token = _DOMAIN_TOKEN.match(data, at)
    domain = token[0] if token else b""
    labels = domain.split(b".")
    if len(domain) > 253 or len(labels) < 2 or not all(len(label) < 64 and _LABEL.fullmatch(label) for label in labels):
        raise Malformed
    return RSLV(domain.lower())


_READERS: Final[dict[bytes, Callable[[int, bytes, int], Command]]] = {
    b"NEW": _read_new,
    b"KEY": lambda _, data, at: KEY(_read_key(data, at)),
    b"RKEY": _read_rkey,
    b"LSET": _read_lset,
    b"NKEY": _read_nkey,
    b"ACK": _read_ack,
    b"SKEY": lambda _, data, at: SKEY(_read_key(data, at)),
    b"SEND": _read_send,
    b"LKEY": lambda _, data, at: LKEY(_read_key(data, at)),
    b"PRXY": _read_prxy,
    b"PFWD": _read_pfwd,
    b"RFWD": lambda _, data, at: RFWD(data[at:]),
    b"RSLV": _read_rslv,
}
_TAGS: Final = frozenset((*_BARE, *_READERS, b"SUBS", b"NSUBS"))
_LONGEST_TAG: Final = max(map(len, _TAGS))


def decode_send(data: bytes, at: int, end: int) -> SEND | None:
    """What follows "SEND ": flags (T or F, unknown ones after it), a space, the body up to `end`."""
    if data[at + 1 : at + 2] == b" " and at + 2 <= end:
        space = at + 1
    else:
        space = data.find(b" ", at + 1, end)
        if space < 0:
            return None
    flag = data[at]
    if flag == 0x46:
        return SEND(False, data[space + 1 : end])
    if flag == 0x54:
        return SEND(True, data[space + 1 : end])
    return None


def _decode_subs(version: int, tag: bytes, data: bytes, space: int) -> Command | CommandError:
    if version >= RCV_SERVICE:
        if space < 0:
            return _SYNTAX
        count, idsh = _read_counted(data, space + 1)
    elif space >= 0:
        return _SYNTAX
    else:
        count, idsh = -1, ids_hash.EMPTY
    return SUBS(count, idsh) if tag == b"SUBS" else NSUBS(count, idsh)


def decode_command(version: int, data: bytes) -> Command | CommandError:
    """The command, or the reason there is none: UNKNOWN by its tag, SYNTAX by all that follows."""
    if len(data) <= _LONGEST_TAG:
        bare = _BARE.get(data)
        if bare is not None:
            return bare
    space = data.find(b" ", 0, _LONGEST_TAG + 1)
    if space < 0 and len(data) > _LONGEST_TAG:
        return _UNKNOWN
    tag = data if space < 0 else data[:space]
    try:
        reader = _READERS.get(tag)
        if reader is not None:
            return _SYNTAX if space < 0 else reader(version, data, space + 1)
        if tag in (b"SUBS", b"NSUBS"):
            return _decode_subs(version, tag, data, space)
    except Malformed:
        return _SYNTAX
    return _SYNTAX if tag in _TAGS else _UNKNOWN
