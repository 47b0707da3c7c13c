"""NTF commands and replies as bytes, both ways (push notifications protocol, "Notification router commands")."""

from collections.abc import Callable
from typing import Any, Final

from weir.crypto.keys import parse_private
from weir.wire.commands import ServerHost
from weir.wire.encoding import (
    Malformed,
    end_of,
    read_byte,
    read_bytes,
    read_short,
    read_word16,
    short,
    word16,
)
from weir.wire.error_codec import encode_error, read_error
from weir.wire.errors import CommandError
from weir.wire.ntf.types import (
    ERR,
    IDSUB,
    IDTKN,
    OK,
    PING,
    PONG,
    SCHK,
    SDEL,
    SNEW,
    SUB,
    TCHK,
    TCRN,
    TDEL,
    TKN,
    TNEW,
    TRPL,
    TVFY,
    DeviceToken,
    InvalidReason,
    NtfCommand,
    NtfReply,
    PushProvider,
    SmpQueueNtf,
    SubError,
    SubStatus,
    TokenInvalid,
    TokenStatus,
)
from weir.wire.parts import dh_key, read_auth_key, read_dh_key, read_server_host, server_host
from weir.wire.versions import NTF_INVALID_REASON

_UNKNOWN: Final = CommandError.UNKNOWN
_SYNTAX: Final = CommandError.SYNTAX
_PROVIDERS: Final = {provider.value: provider for provider in PushProvider}
_TOKEN_STATUS: Final = {status.value.encode(): status for status in TokenStatus}
_REASONS: Final = {reason.value.encode(): reason for reason in InvalidReason}
_SUB_STATUS: Final = {status.value.encode(): status for status in SubStatus}

# --- encoding ---


def _device_token(token: DeviceToken) -> bytes:
    return token.provider.value + short(token.token)


def _token_status(version: int, status: TokenStatus | TokenInvalid) -> bytes:
    """INVALID names its reason from version 3 on."""
    if isinstance(status, TokenStatus):
        return status.value.encode()
    if status.reason is None or version < NTF_INVALID_REASON:
        return b"INVALID"
    return b"INVALID," + status.reason.value.encode()


def _sub_status(status: SubStatus | SubError) -> bytes:
    return status.value.encode() if isinstance(status, SubStatus) else b"ERR " + status.text


_BARE_COMMANDS: Final[dict[bytes, NtfCommand]] = {
    b"TCHK": TCHK(),
    b"TDEL": TDEL(),
    b"SCHK": SCHK(),
    b"SDEL": SDEL(),
    b"PING": PING(),
}
_BARE_REPLIES: Final[dict[bytes, NtfReply]] = {b"OK": OK(), b"PONG": PONG()}

_COMMAND_ENCODERS: Final[dict[type, Callable[[Any], bytes]]] = {
    TNEW: lambda cmd: b"TNEW T" + _device_token(cmd.token) + short(cmd.verify_key) + dh_key(cmd.dh_key),
    TVFY: lambda cmd: b"TVFY " + short(cmd.code),
    TRPL: lambda cmd: b"TRPL " + _device_token(cmd.token),
    TCRN: lambda cmd: b"TCRN " + word16(cmd.minutes),
    SNEW: lambda cmd: (
        b"SNEW S"
        + short(cmd.token_id)
        + server_host(cmd.queue.server)
        + short(cmd.queue.notifier_id)
        + short(cmd.ntf_key)
    ),
} | {type(cmd): (lambda _, tag=tag: tag) for tag, cmd in _BARE_COMMANDS.items()}

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
    """The same at every version so far."""
    del version
    return _COMMAND_ENCODERS[type(cmd)](cmd)


def encode_reply(version: int, reply: NtfReply) -> bytes:
    return _REPLY_ENCODERS[type(reply)](version, reply)


# --- decoding: each takes the whole message and the position after "TAG " ---


def _read_device_token(data: bytes, at: int) -> tuple[DeviceToken, int]:
    name, at = read_bytes(data, at, 2)
    provider = _PROVIDERS.get(name)
    if provider is None:
        raise Malformed
    token, at = read_short(data, at)
    return DeviceToken(provider, token), at


def _expect(data: bytes, at: int, char: int) -> int:
    value, at = read_byte(data, at)
    if value != char:
        raise Malformed
    return at


def _read_tnew(data: bytes, at: int) -> TNEW:
    token, at = _read_device_token(data, _expect(data, at, 0x54))
    verify_key, at = read_auth_key(data, at)
    token_dh_key, at = read_dh_key(data, at)
    end_of(data, at)
    return TNEW(token, verify_key, token_dh_key)


def _read_tvfy(data: bytes, at: int) -> TVFY:
    code, at = read_short(data, at)
    end_of(data, at)
    return TVFY(code)


def _read_trpl(data: bytes, at: int) -> TRPL:
    token, at = _read_device_token(data, at)
    end_of(data, at)
    return TRPL(token)


def _read_tcrn(data: bytes, at: int) -> TCRN:
    minutes, at = read_word16(data, at)
    end_of(data, at)
    return TCRN(minutes)


def _read_snew(data: bytes, at: int) -> SNEW:
    token_id, at = read_short(data, _expect(data, at, 0x53))
    server: ServerHost
    server, at = read_server_host(data, at)
    notifier_id, at = read_short(data, at)
    key, at = read_short(data, at)
    end_of(data, at)
    if parse_private(key) is None:
        raise Malformed
    return SNEW(token_id, SmpQueueNtf(server, notifier_id), key)


_COMMAND_READERS: Final[dict[bytes, Callable[[bytes, int], NtfCommand]]] = {
    b"TNEW": _read_tnew,
    b"TVFY": _read_tvfy,
    b"TRPL": _read_trpl,
    b"TCRN": _read_tcrn,
    b"SNEW": _read_snew,
}


def _split(data: bytes) -> tuple[bytes, int]:
    """The tag, and the position after the space that ends it, or 0."""
    space = data.find(b" ")
    return (data, 0) if space < 0 else (data[:space], space + 1)


def decode_command(version: int, data: bytes) -> NtfCommand | CommandError:
    """The command, or the reason there is none: UNKNOWN by its tag, SYNTAX by all that follows."""
    del version
    tag, at = _split(data)
    bare = _BARE_COMMANDS.get(tag)
    if bare is not None:
        return _SYNTAX if at else bare
    reader = _COMMAND_READERS.get(tag)
    if reader is None:
        return _UNKNOWN
    if not at:
        return _SYNTAX
    try:
        return reader(data, at)
    except Malformed:
        return _SYNTAX


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


def _read_idtkn(data: bytes, at: int) -> IDTKN:
    token_id, at = read_short(data, at)
    srv_dh_key, at = read_dh_key(data, at)
    end_of(data, at)
    return IDTKN(token_id, srv_dh_key)


def _read_idsub(data: bytes, at: int) -> IDSUB:
    sub_id, at = read_short(data, at)
    end_of(data, at)
    return IDSUB(sub_id)


def _read_tkn(data: bytes, at: int) -> TKN:
    status = decode_token_status(data[at:])
    if status is None:
        raise Malformed
    return TKN(status)


def _read_sub(data: bytes, at: int) -> SUB:
    status = decode_sub_status(data[at:])
    if status is None:
        raise Malformed
    return SUB(status)


_REPLY_READERS: Final[dict[bytes, Callable[[bytes, int], NtfReply]]] = {
    b"IDTKN": _read_idtkn,
    b"IDSUB": _read_idsub,
    b"ERR": lambda data, at: ERR(read_error(data, at)),
    b"TKN": _read_tkn,
    b"SUB": _read_sub,
}


def decode_reply(version: int, data: bytes) -> NtfReply | CommandError:
    del version
    tag, at = _split(data)
    bare = _BARE_REPLIES.get(tag)
    if bare is not None:
        return _SYNTAX if at else bare
    reader = _REPLY_READERS.get(tag)
    if reader is None:
        return _UNKNOWN
    if not at:
        return _SYNTAX
    try:
        return reader(data, at)
    except Malformed:
        return _SYNTAX
