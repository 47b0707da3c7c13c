"""`ERR` and its parameters, as bytes (protocol, "Error responses")."""

import json
from typing import Final

from weir.wire.encoding import Malformed, expect_end, read_short, short
from weir.wire.errors import (
    Blocked,
    BlockingInfo,
    BlockingReason,
    BrokerErrorTag,
    BrokerErrorType,
    BrokerResponse,
    BrokerTransport,
    CommandError,
    ErrorType,
    HandshakeError,
    Name,
    NameErrorTag,
    NameResolver,
    Proxy,
    ProxyBroker,
    ProxyErrorTag,
    ProxyProtocol,
    Simple,
    Store,
    TransportError,
    TransportErrorType,
)
from weir.wire.versions import BLOCKED_ENTITY, CLIENT_NOTICES

MAX_NESTING: Final = 8
"""The most levels of `PROXY PROTOCOL PROXY PROTOCOL …` that the decoder accepts. Routers send one level."""

_SIMPLE = {error.value.encode(): error for error in Simple}
_COMMAND = {error.value.encode(): error for error in CommandError} | {b"NO_QUEUE": CommandError.NO_ENTITY}
_REASON = {reason.value.encode(): reason for reason in BlockingReason}
_HANDSHAKE = {error.value.encode(): error for error in HandshakeError}
_TRANSPORT = {error.value.encode(): error for error in TransportError}
_BROKER = {error.value.encode(): error for error in BrokerErrorTag if error is not BrokerErrorTag.NETWORK}
_PROXY = {error.value.encode(): error for error in ProxyErrorTag}
_NAME = {error.value.encode(): error for error in NameErrorTag}
_NETWORK_DETAIL = (b"UNKNOWNCA", b"FAILED", b"TIMEOUT")
_NETWORK_TEXT = (b"CONNECT", b"TLS", b"SUBSCRIBE")


def encode_transport_error(error: TransportErrorType) -> bytes:
    """transportError, as in the third message of the handshake and in PROXY BROKER TRANSPORT."""
    if isinstance(error, HandshakeError):
        return b"HANDSHAKE " + error.value.encode()
    return error.value.encode()


def encode_blocking_info(info: BlockingInfo) -> bytes:
    notice = b"" if info.notice is None else b",notice=" + info.notice
    return b"reason=" + info.reason.value.encode() + notice


def _encode_broker(error: BrokerErrorType) -> bytes:
    if isinstance(error, BrokerErrorTag):
        return error.value.encode()
    if isinstance(error, BrokerTransport):
        return b"TRANSPORT " + encode_transport_error(error.error)
    tag = b"UNEXPECTED " if error.unexpected else b"RESPONSE "
    return tag + short(error.text.encode("latin-1", "replace")[:255])


def encode_error(error: ErrorType) -> bytes:
    """Encode the error for the newest version. For an older version, call `for_version` first."""
    if isinstance(error, Simple):
        return error.value.encode()
    if isinstance(error, CommandError):
        return b"CMD " + error.value.encode()
    if isinstance(error, Blocked):
        return b"BLOCKED " + encode_blocking_info(error.info)
    if isinstance(error, Store):
        return b"STORE " + error.text.encode()
    if isinstance(error, Name):
        inner = error.error
        return b"NAME " + (
            inner.value.encode() if isinstance(inner, NameErrorTag) else b"RESOLVER " + inner.text.encode()
        )
    proxied = error.error
    if isinstance(proxied, ProxyErrorTag):
        return b"PROXY " + proxied.value.encode()
    if isinstance(proxied, ProxyProtocol):
        return b"PROXY PROTOCOL " + encode_error(proxied.error)
    return b"PROXY BROKER " + _encode_broker(proxied.error)


def for_version(version: int, error: ErrorType) -> ErrorType:
    """Replace what the version does not know: BLOCKED becomes AUTH before 12, and loses its notice before 18."""
    if isinstance(error, Blocked):
        if version < BLOCKED_ENTITY:
            return Simple.AUTH
        if version < CLIENT_NOTICES:
            return Blocked(BlockingInfo(error.info.reason))
    return error


def _word(data: bytes, at: int) -> tuple[bytes, int]:
    """Return the bytes up to the next space or the end, and the position after them."""
    end = data.find(b" ", at)
    if end < 0:
        end = len(data)
    return data[at:end], end


def _space(data: bytes, at: int) -> int:
    if data[at : at + 1] != b" ":
        raise Malformed
    return at + 1


def _text(data: bytes, at: int) -> str:
    return data[_space(data, at) :].decode("utf-8", "replace")


def _no_constant(_: str) -> None:
    raise ValueError


def _is_notice(text: bytes) -> bool:
    """Whether the text is a notice: `{"ttl": seconds}` or `{}`. Unknown members are ignored."""
    try:
        value = json.loads(text.decode(), parse_constant=_no_constant)
    except (ValueError, RecursionError):
        return False
    if not isinstance(value, dict):
        return False
    ttl = value.get("ttl")
    return ttl is None or (isinstance(ttl, int) and not isinstance(ttl, bool) and -(2**63) <= ttl < 2**63)


def decode_blocking_info(data: bytes) -> BlockingInfo | None:
    if not data.startswith(b"reason="):
        return None
    name, comma, notice = data[7:].partition(b",notice=")
    reason = _REASON.get(name)
    if reason is None or (comma and not _is_notice(notice)):
        return None
    return BlockingInfo(reason, notice if comma else None)


def decode_transport_error(data: bytes) -> TransportErrorType | None:
    if data.startswith(b"HANDSHAKE "):
        return _HANDSHAKE.get(data[10:])
    return _TRANSPORT.get(data)


def _decode_network(data: bytes, at: int) -> BrokerErrorTag:
    """NETWORK may carry a detail. The detail is checked and dropped."""
    if at < len(data):
        detail, at = _word(data, _space(data, at))
        if detail in _NETWORK_TEXT:
            _, at = read_short(data, _space(data, at))
        elif detail not in _NETWORK_DETAIL:
            raise Malformed
        expect_end(data, at)
    return BrokerErrorTag.NETWORK


def _decode_broker(data: bytes, at: int) -> BrokerErrorType:
    tag, at = _word(data, at)
    if tag in (b"RESPONSE", b"UNEXPECTED"):
        text, at = read_short(data, _space(data, at))
        expect_end(data, at)
        return BrokerResponse(text.decode("latin-1"), unexpected=tag == b"UNEXPECTED")
    if tag == b"TRANSPORT":
        error = decode_transport_error(data[_space(data, at) :])
        if error is None:
            raise Malformed
        return BrokerTransport(error)
    if tag == b"NETWORK":
        return _decode_network(data, at)
    expect_end(data, at)
    simple = _BROKER.get(tag)
    if simple is None:
        raise Malformed
    return simple


def _decode_proxy(data: bytes, at: int, depth: int) -> ProxyErrorTag | ProxyProtocol | ProxyBroker:
    tag, at = _word(data, at)
    if tag == b"PROTOCOL":
        return ProxyProtocol(read_error(data, _space(data, at), depth + 1))
    if tag == b"BROKER":
        return ProxyBroker(_decode_broker(data, _space(data, at)))
    expect_end(data, at)
    simple = _PROXY.get(tag)
    if simple is None:
        raise Malformed
    return simple


def _decode_name(data: bytes, at: int) -> Name:
    tag, at = _word(data, at)
    if tag == b"RESOLVER":
        return Name(NameResolver(_text(data, at)))
    expect_end(data, at)
    simple = _NAME.get(tag)
    if simple is None:
        raise Malformed
    return Name(simple)


def read_error(data: bytes, at: int, depth: int = 0) -> ErrorType:
    """Read the error that fills `data` from `at` to the end."""
    if depth > MAX_NESTING:
        raise Malformed
    tag, at = _word(data, at)
    if tag == b"CMD":
        command = _COMMAND.get(data[_space(data, at) :])
        if command is None:
            raise Malformed
        return command
    if tag == b"PROXY":
        return Proxy(_decode_proxy(data, _space(data, at), depth))
    if tag == b"BLOCKED":
        info = decode_blocking_info(data[_space(data, at) :])
        if info is None:
            raise Malformed
        return Blocked(info)
    if tag == b"STORE":
        return Store(_text(data, at))
    if tag == b"NAME":
        return _decode_name(data, _space(data, at))
    expect_end(data, at)
    simple = _SIMPLE.get(tag)
    if simple is None:
        raise Malformed
    return simple


def decode_error(data: bytes) -> ErrorType | None:
    """Decode an error; None if the bytes are malformed."""
    try:
        return read_error(data, 0)
    except Malformed:
        return None
