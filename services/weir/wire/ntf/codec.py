"""NTF commands and replies as bytes, both ways (push notifications protocol, "Notification router commands")."""

from collections.abc import Callable
from dataclasses import fields
from typing import Any, Final

from weir.crypto.keys import parse_private
from weir.wire.address import ServerHost
from weir.wire.encoding import (
    Malformed,
    expect_end,
    read_byte,
    read_short,
    read_word16,
    short,
    word16,
)
from weir.wire.error_codec import encode_error, read_error
from weir.wire.errors import CommandError
from weir.wire.ntf.device_token import encode_device_token, read_device_token
from weir.wire.ntf.types import (
    DECLARATIONS,
    ERR,
    IDSUB,
    IDTKN,
    OK,
    PONG,
    SNEW,
    SUB,
    TCRN,
    TKN,
    TNEW,
    TRPL,
    TVFY,
    InvalidReason,
    NtfCommand,
    NtfReply,
    SmpQueueNtf,
    SubError,
    SubStatus,
    TokenInvalid,
    TokenStatus,
)
from weir.wire.parts import dh_key, read_auth_key, read_dh_key, read_server_host, server_host
from weir.wire.tagged import Reader, tagged_decoder
from weir.wire.versions import NTF_INVALID_REASON

_TOKEN_STATUS: Final = {status.value.encode(): status for status in TokenStatus}
_REASONS: Final = {reason.value.encode(): reason for reason in InvalidReason}
_SUB_STATUS: Final = {status.value.encode(): status for status in SubStatus}

# --- encoding ---


def _token_status(version: int, status: TokenStatus | TokenInvalid) -> bytes:
    """Version 3 added the reason to INVALID."""
    if isinstance(status, TokenStatus):
        return status.value.encode()
    if status.reason is None or version < NTF_INVALID_REASON:
        return b"INVALID"
    return b"INVALID," + status.reason.value.encode()


def _sub_status(status: SubStatus | SubError) -> bytes:
    return status.value.encode() if isinstance(status, SubStatus) else b"ERR " + status.text


_BARE_COMMANDS: Final[dict[bytes, NtfCommand]] = {
    declaration.tag: kind() for kind, declaration in DECLARATIONS.items() if not fields(kind)
}
_BARE_REPLIES: Final[dict[bytes, NtfReply]] = {b"OK": OK(), b"PONG": PONG()}

_COMMAND_ENCODERS: Final[dict[type, Callable[[bytes, Any], bytes]]] = {
    TNEW: lambda prefix, cmd: (
        prefix + b"T" + encode_device_token(cmd.token) + short(cmd.verify_key) + dh_key(cmd.dh_key)
    ),
    TVFY: lambda prefix, cmd: prefix + short(cmd.code),
    TRPL: lambda prefix, cmd: prefix + encode_device_token(cmd.token),
    TCRN: lambda prefix, cmd: prefix + word16(cmd.minutes),
    SNEW: lambda prefix, cmd: (
        prefix
        + b"S"
        + short(cmd.token_id)
        + server_host(cmd.queue.server)
        + short(cmd.queue.notifier_id)
        + short(cmd.ntf_key)
    ),
} | {type(bare): lambda prefix, _: prefix[:-1] for bare in _BARE_COMMANDS.values()}
"""Each encoder takes the prefix (tag and space) and the command."""

_PREFIXES: Final = {kind: declaration.tag + b" " for kind, declaration in DECLARATIONS.items()}

_REPLY_ENCODERS: Final[dict[type, Callable[[int, Any], bytes]]] = {
    IDTKN: lambda _, reply: b"IDTKN " + short(reply.token_id) + dh_key(reply.dh_key),
    IDSUB: lambda _, reply: b"IDSUB " + short(reply.sub_id),
    OK: lambda _, __: b"OK",
    PONG: lambda _, __: b"PONG",
    ERR: lambda _, reply: b"ERR " + encode_error(reply.error),
    TKN: lambda version, reply: b"TKN " + _token_status(version, reply.status),
    SUB: lambda _, reply: b"SUB " + _sub_status(reply.status),
}


def encode_command(version: int, cmd: NtfCommand) -> bytes:
    """Encode a command. The bytes are the same at every version so far."""
    del version
    kind = type(cmd)
    return _COMMAND_ENCODERS[kind](_PREFIXES[kind], cmd)


def encode_reply(version: int, reply: NtfReply) -> bytes:
    return _REPLY_ENCODERS[type(reply)](version, reply)


# --- decoding: see `Reader` for what each reader takes ---


def _expect(data: bytes, at: int, char: int) -> int:
    value, at = read_byte(data, at)
    if value != char:
        raise Malformed
    return at


def _read_tnew(_: int, data: bytes, at: int) -> TNEW:
    token, at = read_device_token(data, _expect(data, at, 0x54))
    verify_key, at = read_auth_key(data, at)
    token_dh_key, at = read_dh_key(data, at)
    expect_end(data, at)
    return TNEW(token, verify_key, token_dh_key)


def _read_tvfy(_: int, data: bytes, at: int) -> TVFY:
    code, at = read_short(data, at)
    expect_end(data, at)
    return TVFY(code)


def _read_trpl(_: int, data: bytes, at: int) -> TRPL:
    token, at = read_device_token(data, at)
    expect_end(data, at)
    return TRPL(token)


def _read_tcrn(_: int, data: bytes, at: int) -> TCRN:
    minutes, at = read_word16(data, at)
    expect_end(data, at)
    return TCRN(minutes)


def _read_snew(_: int, data: bytes, at: int) -> SNEW:
    token_id, at = read_short(data, _expect(data, at, 0x53))
    server: ServerHost
    server, at = read_server_host(data, at)
    notifier_id, at = read_short(data, at)
    key, at = read_short(data, at)
    expect_end(data, at)
    if parse_private(key) is None:
        raise Malformed
    return SNEW(token_id, SmpQueueNtf(server, notifier_id), key)


_COMMAND_READERS: Final[dict[type[NtfCommand], Reader[NtfCommand]]] = {
    TNEW: _read_tnew,
    TVFY: _read_tvfy,
    TRPL: _read_trpl,
    TCRN: _read_tcrn,
    SNEW: _read_snew,
}
_COMMAND_READERS_BY_TAG: Final = {DECLARATIONS[kind].tag: read for kind, read in _COMMAND_READERS.items()}
_decode_command: Final = tagged_decoder(_BARE_COMMANDS, _COMMAND_READERS_BY_TAG)


def decode_command(version: int, data: bytes) -> NtfCommand | CommandError:
    """Decode a command. The error is UNKNOWN for an unknown tag and SYNTAX for wrong parameters."""
    return _decode_command(version, data)


def decode_token_status(data: bytes) -> TokenStatus | TokenInvalid | None:
    name, comma, reason = data.partition(b",")
    if name == b"INVALID":
        if not comma:
            return TokenInvalid()
        known = _REASONS.get(reason)
        return None if known is None else TokenInvalid(known)
    return None if comma else _TOKEN_STATUS.get(name)


def decode_sub_status(data: bytes) -> SubStatus | SubError | None:
    if data.startswith(b"ERR "):
        return SubError(data[4:])
    return _SUB_STATUS.get(data)


def _read_idtkn(_: int, data: bytes, at: int) -> IDTKN:
    token_id, at = read_short(data, at)
    srv_dh_key, at = read_dh_key(data, at)
    expect_end(data, at)
    return IDTKN(token_id, srv_dh_key)


def _read_idsub(_: int, data: bytes, at: int) -> IDSUB:
    sub_id, at = read_short(data, at)
    expect_end(data, at)
    return IDSUB(sub_id)


def _read_tkn(_: int, data: bytes, at: int) -> TKN:
    status = decode_token_status(data[at:])
    if status is None:
        raise Malformed
    return TKN(status)


def _read_sub(_: int, data: bytes, at: int) -> SUB:
    status = decode_sub_status(data[at:])
    if status is None:
        raise Malformed
    return SUB(status)


_REPLY_READERS: Final[dict[bytes, Reader[NtfReply]]] = {
    b"IDTKN": _read_idtkn,
    b"IDSUB": _read_idsub,
    b"ERR": lambda _, data, at: ERR(read_error(data, at)),
    b"TKN": _read_tkn,
    b"SUB": _read_sub,
}


_decode_reply: Final = tagged_decoder(_BARE_REPLIES, _REPLY_READERS)


def decode_reply(version: int, data: bytes) -> NtfReply | CommandError:
    """Decode a reply. The errors are those of `decode_command`."""
    return _decode_reply(version, data)
