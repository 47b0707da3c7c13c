"""SMP client commands as bytes, both ways (protocol, "SMP commands").

Tags come from the commands' declarations; this module adds the parameters. SEND, ACK and the commands without
parameters are the most frequent: they are decoded by slicing, and a command without parameters is one shared object.
"""

import re
from collections.abc import Callable
from dataclasses import fields
from typing import Any, Final

from weir.wire.encoding import (
    Malformed,
    boolean,
    expect_end,
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
from weir.wire.parts import dh_key, read_auth_key, read_dh_key, read_server_host, server_host
from weir.wire.smp import ids_hash
from weir.wire.smp.commands import (
    ACK,
    DECLARATIONS,
    KEY,
    LKEY,
    LSET,
    NEW,
    NKEY,
    NSUBS,
    PFWD,
    PRXY,
    RFWD,
    RKEY,
    RSLV,
    SEND,
    SKEY,
    SUBS,
    Command,
    ContactReq,
    LinkData,
    MessagingReq,
    NewNtfCreds,
    QueueReq,
)
from weir.wire.smp.parts import link_data, read_basic_auth, read_link_data
from weir.wire.tagged import Reader, tagged_decoder
from weir.wire.versions import NEW_NTF_CREDS, RCV_SERVICE, SHORT_LINKS, SND_AUTH_KEY

# --- encoding ---


def _snd_link(value: tuple[bytes, LinkData]) -> bytes:
    return short(value[0]) + link_data(value[1])


def _link(value: tuple[bytes, tuple[bytes, LinkData]]) -> bytes:
    return short(value[0]) + _snd_link(value[1])


def _queue_req(req: QueueReq) -> bytes:
    """queueReqData: `M` or `C`, then the ids and the link data if the client chose them."""
    if isinstance(req, MessagingReq):
        return b"M" + maybe(req.data, _snd_link)
    return b"C" + maybe(req.data, _link)


def _ntf_creds(creds: NewNtfCreds) -> bytes:
    return short(creds.auth_key) + dh_key(creds.dh_key)


def _new(prefix: bytes, version: int, cmd: NEW) -> bytes:
    """Keys, then by version: `A` auth and mode; auth, mode, sndSecure; … queueReqData; … ntfCreds."""
    keys = prefix + short(cmd.rcv_auth_key) + dh_key(cmd.rcv_dh_key)
    mode = b"S" if cmd.subscribe else b"C"
    if version < SND_AUTH_KEY:
        auth = b"" if cmd.basic_auth is None else b"A" + short(cmd.basic_auth)
        return keys + auth + mode
    keys += maybe(cmd.basic_auth, short) + mode
    if version < SHORT_LINKS:
        return keys + boolean(isinstance(cmd.queue_req, MessagingReq))
    keys += b"0" if cmd.queue_req is None else b"1" + _queue_req(cmd.queue_req)
    return keys if version < NEW_NTF_CREDS else keys + maybe(cmd.ntf_creds, _ntf_creds)


def _subs(prefix: bytes, version: int, cmd: SUBS | NSUBS) -> bytes:
    """Version 19 added count and idsHash."""
    return prefix[:-1] if version < RCV_SERVICE else prefix + int64(cmd.count) + short(cmd.ids_hash)


def _tag_alone(prefix: bytes, _version: int, _cmd: Command) -> bytes:
    return prefix[:-1]


_BARE: Final[dict[bytes, Command]] = {
    declaration.tag: kind() for kind, declaration in DECLARATIONS.items() if not fields(kind)
}

_ENCODERS: Final[dict[type, Callable[[bytes, int, Any], bytes]]] = {
    NEW: _new,
    SUBS: _subs,
    NSUBS: _subs,
    KEY: lambda prefix, _, cmd: prefix + short(cmd.key),
    RKEY: lambda prefix, _, cmd: prefix + items(tuple(short(key) for key in cmd.keys)),
    LSET: lambda prefix, _, cmd: prefix + short(cmd.link_id) + link_data(cmd.data),
    NKEY: lambda prefix, _, cmd: prefix + short(cmd.auth_key) + dh_key(cmd.dh_key),
    ACK: lambda prefix, _, cmd: prefix + short(cmd.msg_id),
    SKEY: lambda prefix, _, cmd: prefix + short(cmd.key),
    SEND: lambda prefix, _, cmd: prefix + (b"T " if cmd.notification else b"F ") + cmd.body,
    LKEY: lambda prefix, _, cmd: prefix + short(cmd.key),
    PRXY: lambda prefix, _, cmd: prefix + server_host(cmd.server) + maybe(cmd.basic_auth, short),
    PFWD: lambda prefix, _, cmd: prefix + word16(cmd.version) + dh_key(cmd.key) + cmd.transmission,
    RFWD: lambda prefix, _, cmd: prefix + cmd.transmission,
    RSLV: lambda prefix, _, cmd: prefix + cmd.domain,
    **{type(bare): _tag_alone for bare in _BARE.values()},
}
"""Each encoder takes the prefix (tag and space), the version and the command."""

_PREFIXES: Final = {kind: declaration.tag + b" " for kind, declaration in DECLARATIONS.items()}


def encode_command(version: int, cmd: Command) -> bytes:
    kind = type(cmd)
    return _ENCODERS[kind](_PREFIXES[kind], version, cmd)


# --- decoding: see `Reader` for what each reader takes ---


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
    expect_end(data, at)
    return NEW(auth_key, rcv_dh_key, auth, subscribe, req, creds)


def _read_count_and_hash(data: bytes, at: int) -> tuple[int, bytes]:
    count, at = read_int64(data, at)
    queues_hash, at = read_short(data, at)
    expect_end(data, at)
    return count, queues_hash


def _read_key(data: bytes, at: int) -> bytes:
    key, at = read_auth_key(data, at)
    expect_end(data, at)
    return key


def _read_rkey(_: int, data: bytes, at: int) -> RKEY:
    keys, at = read_items(data, at, read_auth_key)
    expect_end(data, at)
    return RKEY(keys)


def _read_lset(_: int, data: bytes, at: int) -> LSET:
    link_id, at = read_short(data, at)
    link, at = read_link_data(data, at)
    expect_end(data, at)
    return LSET(link_id, link)


def _read_nkey(_: int, data: bytes, at: int) -> NKEY:
    creds, at = _read_ntf_creds(data, at)
    expect_end(data, at)
    return NKEY(creds.auth_key, creds.dh_key)


def _read_ack(_: int, data: bytes, at: int) -> ACK:
    msg_id, at = read_short(data, at)
    expect_end(data, at)
    return ACK(msg_id)


def _read_send(_: int, data: bytes, at: int) -> SEND:
    command = decode_send(data, at, len(data))
    if command is None:
        raise Malformed
    return command


def _read_prxy(_: int, data: bytes, at: int) -> PRXY:
    server, at = read_server_host(data, at)
    auth, at = read_maybe(data, at, read_basic_auth)
    expect_end(data, at)
    return PRXY(server, auth)


def _read_pfwd(_: int, data: bytes, at: int) -> PFWD:
    version, at = read_word16(data, at)
    key, at = read_dh_key(data, at)
    return PFWD(version, key, data[at:])


def _subs_reader(kind: type[SUBS | NSUBS]) -> Reader[Command]:
    return lambda _, data, at: kind(*_read_count_and_hash(data, at))


_DOMAIN_TOKEN = re.compile(rb"[^ \t\n\v\f\r]+")
_LABEL = re.compile(rb"[A-Za-z0-9]+(?:-[A-Za-z0-9]+)*")


def _read_rslv(_: int, data: bytes, at: int) -> RSLV:
    """A domain: at least two labels, 253 bytes at most. Bytes after a space are reserved for later versions."""
    token = _DOMAIN_TOKEN.match(data, at)
    domain = token[0] if token else b""
    labels = domain.split(b".")
    if len(domain) > 253 or len(labels) < 2 or not all(len(label) < 64 and _LABEL.fullmatch(label) for label in labels):
        raise Malformed
    return RSLV(domain.lower())


_READERS: Final[dict[type[Command], Reader[Command]]] = {
    NEW: _read_new,
    KEY: lambda _, data, at: KEY(_read_key(data, at)),
    RKEY: _read_rkey,
    LSET: _read_lset,
    NKEY: _read_nkey,
    ACK: _read_ack,
    SKEY: lambda _, data, at: SKEY(_read_key(data, at)),
    SEND: _read_send,
    LKEY: lambda _, data, at: LKEY(_read_key(data, at)),
    PRXY: _read_prxy,
    PFWD: _read_pfwd,
    RFWD: lambda _, data, at: RFWD(data[at:]),
    RSLV: _read_rslv,
}
_READERS_BY_TAG: Final = {DECLARATIONS[kind].tag: read for kind, read in _READERS.items()}
_SUBS_BY_TAG: Final[dict[bytes, type[SUBS | NSUBS]]] = {DECLARATIONS[kind].tag: kind for kind in (SUBS, NSUBS)}

_decode: Final = tagged_decoder(
    _BARE, {**_READERS_BY_TAG, **{tag: _subs_reader(kind) for tag, kind in _SUBS_BY_TAG.items()}}
)
_decode_before_rcv_service: Final = tagged_decoder(
    {**_BARE, **{tag: kind(-1, ids_hash.EMPTY) for tag, kind in _SUBS_BY_TAG.items()}}, _READERS_BY_TAG
)


def decode_command(version: int, data: bytes) -> Command | CommandError:
    """Decode a command. The error is UNKNOWN for an unknown tag and SYNTAX for wrong parameters."""
    return (_decode if version >= RCV_SERVICE else _decode_before_rcv_service)(version, data)


def decode_send(data: bytes, at: int, end: int) -> SEND | None:
    """Decode the part after "SEND ": flags, a space, and the body up to `end`.

    The first flag is T or F. Unknown flags may follow and are ignored.
    """
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
