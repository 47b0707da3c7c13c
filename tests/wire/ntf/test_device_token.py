import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.wire import strategies as s
from weir.crypto.p256 import from_base64url
from weir.wire.encoding import Malformed
from weir.wire.ntf.device_token import (
    WebPushToken,
    encode_device_token,
    format_device_token,
    parse_device_token,
    read_device_token,
    web_push_origin,
    web_push_token,
)
from weir.wire.ntf.types import DeviceToken, PushProvider

_AUTH = "AQ3VfRX3_F38J3ltcmMVRg"
_KEY = "BKuw4WxupnnrZHqk6vCwoms4tOpitZMvFdR9eAn54yOPY4q9jpXOpl-Ui_FwbIy8ZbFCnuaS7RnO02ahuL4XxIM"
_TOKEN = WebPushToken("localhost", None, "/secret", from_base64url(_AUTH.encode()), from_base64url(_KEY.encode()))
_PARTS = (b"localhost", b"", b"/secret", _TOKEN.auth, _TOKEN.p256dh)


def _joined(*parts: bytes) -> bytes:
    return b"".join(bytes((len(part),)) + part for part in parts)


def test_the_bytes_of_a_web_push_token() -> None:
    assert encode_device_token(_TOKEN.device_token) == b"WP" + _joined(*_PARTS)
    assert read_device_token(b"WP" + _joined(*_PARTS) + b"rest", 0) == (_TOKEN.device_token, 2 + len(_joined(*_PARTS)))
    assert web_push_token(_TOKEN.device_token.token) == _TOKEN


@given(s.web_push_token)
def test_web_push_round_trips(token: WebPushToken) -> None:
    assert web_push_token(token.encode()) == token
    assert web_push_origin(token.encode()) == token.origin
    assert parse_device_token(format_device_token(token.device_token)) == token.device_token


@given(s.mutated(s.device_token.map(encode_device_token)))
def test_reading_is_total(data: bytes) -> None:
    try:
        token, end = read_device_token(data, 0)
    except Malformed:
        return
    assert encode_device_token(token) == data[:end]


@given(st.one_of(st.text(max_size=80), s.web_push_token.map(lambda token: format_device_token(token.device_token)[1:])))
def test_parsing_is_total(text: str) -> None:
    token = parse_device_token(text)
    assert token is None or parse_device_token(format_device_token(token)) == token


@pytest.mark.parametrize(
    "parts",
    [
        _PARTS[:4],
        (*_PARTS, b"more"),
        (b"", *_PARTS[1:]),
        (b"local host", *_PARTS[1:]),
        (b"user@host", *_PARTS[1:]),
        (b"[::1]", *_PARTS[1:]),
        (b"h\xc3\xa9", *_PARTS[1:]),
        (_PARTS[0], b"0", *_PARTS[2:]),
        (_PARTS[0], b"65536", *_PARTS[2:]),
        (_PARTS[0], b"+1", *_PARTS[2:]),
        (*_PARTS[:2], b"secret", *_PARTS[3:]),
        (*_PARTS[:2], b"/a b", *_PARTS[3:]),
        (*_PARTS[:2], b"/a\r\nX: y", *_PARTS[3:]),
        (*_PARTS[:2], b"/a#b", *_PARTS[3:]),
        (*_PARTS[:3], bytes(15), _PARTS[4]),
        (*_PARTS[:4], bytes(65)),
        (*_PARTS[:4], _PARTS[4][:-1] + b"\0"),  # no point of the curve
    ],
)
def test_wrong_web_push_tokens(parts: tuple[bytes, ...]) -> None:
    assert web_push_token(_joined(*parts)) is None


@pytest.mark.parametrize(
    ("text", "token"),
    [
        (f"webpush https://localhost/secret {_AUTH} {_KEY}", _TOKEN.device_token),
        (f"webpush https://localhost/secret {_AUTH}== {_KEY}=", _TOKEN.device_token),
        (f"webpush https://localhost {_AUTH} {_KEY}", _TOKEN._replace(path="").device_token),
        (f"webpush https://localhost:8443/secret {_AUTH} {_KEY}", _TOKEN._replace(port=8443).device_token),
        ("apns_null test_ntf_token", DeviceToken(PushProvider.APNS_NULL, b"test_ntf_token")),
        ("apns_prod 00ff", DeviceToken(PushProvider.APNS_PROD, b"00ff")),
        ("apns_dev 00ff", DeviceToken(PushProvider.APNS_DEV, b"00ff")),
        ("apns_test 00ff", DeviceToken(PushProvider.APNS_TEST, b"00ff")),
        ("apns_prod 00f", None),
        ("apns_prod " + "00" * 128, None),
        ("apns_other 00ff", None),
        (f"webpush http://localhost/secret {_AUTH} {_KEY}", None),
        (f"webpush https://localhost:/secret {_AUTH} {_KEY}", None),
        (f"webpush https://localhost:99999/secret {_AUTH} {_KEY}", None),
        (f"webpush https://localhost/{'x' * 255} {_AUTH} {_KEY}", None),
        (f"webpush https://localhost/é {_AUTH} {_KEY}", None),
        (f"webpush https://localhost/secret A {_KEY}", None),
        (f"webpush https://localhost/secret {_AUTH}", None),
    ],
)
def test_the_text_form(text: str, token: DeviceToken | None) -> None:
    assert parse_device_token(text) == token
    if token is not None:
        assert format_device_token(token).rstrip("=") == text.replace("= ", " ").replace("= ", " ").rstrip("=")


def test_only_subscriptions_have_a_text_form() -> None:
    with pytest.raises(ValueError, match="not a Web Push token"):
        format_device_token(DeviceToken(PushProvider.WEB_PUSH, b"nonsense"))
