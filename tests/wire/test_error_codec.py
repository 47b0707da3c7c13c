import pytest
from hypothesis import given

from tests.wire import strategies as s
from weir.wire import error_codec
from weir.wire.errors import (
    Blocked,
    BlockingInfo,
    BlockingReason,
    BrokerErrorTag,
    BrokerResponse,
    CommandError,
    ErrorType,
    HandshakeError,
    Proxy,
    ProxyBroker,
    ProxyProtocol,
    Simple,
    Store,
    TransportError,
    TransportErrorType,
)


@given(s.errors)
def test_round_trip(error: ErrorType) -> None:
    assert error_codec.decode_error(error_codec.encode_error(error)) == error


@given(s.mutated(s.errors.map(error_codec.encode_error)))
def test_total(data: bytes) -> None:
    error = error_codec.decode_error(data)
    if error is not None:
        assert error_codec.decode_error(error_codec.encode_error(error)) == error


@given(s.transport_error)
def test_transport_errors(error: TransportErrorType) -> None:
    assert error_codec.decode_transport_error(error_codec.encode_transport_error(error)) == error


@pytest.mark.parametrize(
    ("data", "error"),
    [
        (b"AUTH", Simple.AUTH),
        (b"CMD NO_QUEUE", CommandError.NO_ENTITY),
        (b"STORE a b", Store("a b")),
        (b"PROXY BROKER NETWORK", Proxy(ProxyBroker(BrokerErrorTag.NETWORK))),
        (b"PROXY BROKER NETWORK CONNECT \x03abc", Proxy(ProxyBroker(BrokerErrorTag.NETWORK))),
        (b"PROXY BROKER NETWORK TIMEOUT", Proxy(ProxyBroker(BrokerErrorTag.NETWORK))),
        (b"PROXY BROKER RESPONSE \x00", Proxy(ProxyBroker(BrokerResponse("")))),
        (b"BLOCKED reason=spam,notice={}", Blocked(BlockingInfo(BlockingReason.SPAM, b"{}"))),
        (b'BLOCKED reason=spam,notice={"x":1}', Blocked(BlockingInfo(BlockingReason.SPAM, b'{"x":1}'))),
        (b"", None),
        (b"AUTH ", None),
        (b"AUTHX", None),
        (b"CMD", None),
        (b"CMD ", None),
        (b"CMD NOPE", None),
        (b"CMD SYNTAX ", None),
        (b"STORE", None),
        (b"PROXY", None),
        (b"PROXY BROKER", None),
        (b"PROXY BROKER TIMEOUT x", None),
        (b"PROXY BROKER NETWORK NOPE", None),
        (b"PROXY BROKER NETWORK CONNECT", None),
        (b"PROXY BROKER RESPONSE \x03ab", None),
        (b"PROXY BROKER TRANSPORT HANDSHAKE", None),
        (b"PROXY BROKER TRANSPORT HANDSHAKE NOPE", None),
        (b"PROXY NOPE", None),
        (b"NAME", None),
        (b"NAME NOPE", None),
        (b"BLOCKED", None),
        (b"BLOCKED reason=", None),
        (b"BLOCKED reason=other", None),
        (b"BLOCKED reason=spam,notice=", None),
        (b"BLOCKED reason=spam,notice=[]", None),
        (b'BLOCKED reason=spam,notice={"ttl":"1"}', None),
        (b'BLOCKED reason=spam,notice={"ttl":true}', None),
        (b'BLOCKED reason=spam,notice={"ttl":NaN}', None),
        (b"BLOCKED reason=spam,notice=" + b"[" * 15000, None),
        (b"BLOCKED reason=spam,notice=\xff", None),
    ],
)
def test_decode(data: bytes, error: ErrorType | None) -> None:
    assert error_codec.decode_error(data) == error


def test_nesting_is_bounded() -> None:
    error: ErrorType = Simple.AUTH
    for _ in range(error_codec.MAX_NESTING):
        error = Proxy(ProxyProtocol(error))
    encoded = error_codec.encode_error(error)
    assert error_codec.decode_error(encoded) == error
    assert error_codec.decode_error(b"PROXY PROTOCOL " + encoded) is None
    assert error_codec.decode_error(b"PROXY PROTOCOL " * 1090) is None


def test_long_texts_are_cut() -> None:
    encoded = error_codec.encode_error(Proxy(ProxyBroker(BrokerResponse("x" * 300 + "\u0444"))))
    assert error_codec.decode_error(encoded) == Proxy(ProxyBroker(BrokerResponse("x" * 255)))


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        (11, Simple.AUTH),
        (12, Blocked(BlockingInfo(BlockingReason.CONTENT))),
        (17, Blocked(BlockingInfo(BlockingReason.CONTENT))),
        (18, Blocked(BlockingInfo(BlockingReason.CONTENT, b'{"ttl":1}'))),
    ],
)
def test_blocked_by_version(version: int, expected: ErrorType) -> None:
    blocked = Blocked(BlockingInfo(BlockingReason.CONTENT, b'{"ttl":1}'))
    assert error_codec.for_version(version, blocked) == expected
    assert error_codec.for_version(version, Simple.QUOTA) is Simple.QUOTA


@pytest.mark.parametrize(
    ("data", "error"),
    [(b"BLOCK", TransportError.BLOCK), (b"HANDSHAKE PARSE", HandshakeError.PARSE), (b"", None), (b"HANDSHAKE", None)],
)
def test_decode_transport(data: bytes, error: TransportErrorType | None) -> None:
    assert error_codec.decode_transport_error(data) == error
