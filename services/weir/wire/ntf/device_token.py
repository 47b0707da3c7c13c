"""Device tokens: as bytes in TNEW and TRPL, and as text for people (`apns_prod <hex>`, `webpush https://…`).

A Web Push token holds a whole subscription: the endpoint, the receiver's authentication secret and key. The push server
is part of the token: a device, or an attacker, chooses where the router sends its requests.
"""

import re
from typing import Final, NamedTuple

from weir.crypto.p256 import base64url, from_base64url, public_key
from weir.wire.encoding import Malformed, read_bytes, read_short, short
from weir.wire.ntf.types import DeviceToken, PushProvider

_PROVIDERS: Final = {provider.value: provider for provider in PushProvider}
_NAMES: Final = {
    PushProvider.APNS_DEV: "apns_dev",
    PushProvider.APNS_PROD: "apns_prod",
    PushProvider.APNS_TEST: "apns_test",
    PushProvider.APNS_NULL: "apns_null",
}
_BY_NAME: Final = {name: provider for provider, name in _NAMES.items()}

_HOST: Final = re.compile(rb"[A-Za-z0-9._-]{1,253}")
_PORT: Final = re.compile(rb"[1-9][0-9]{0,4}")
_PATH: Final = re.compile(rb"(?:/[!\"$-~]*)?")
_TEXT: Final = re.compile(r"webpush https://([^/: ]+)(?::(\d+))?([^ ]*) ([A-Za-z0-9_=-]+) ([A-Za-z0-9_=-]+)")
_APNS_TEXT: Final = re.compile(r"(apns_[a-z]+) ((?:[0-9a-f]{2})+)")
_NULL_TEXT: Final = "apns_null test_ntf_token"


class WebPushToken(NamedTuple):
    """`port` is None for 443. `path` may have a query. `p256dh` is an uncompressed point of P-256."""

    host: str
    port: int | None
    path: str
    auth: bytes
    p256dh: bytes

    @property
    def origin(self) -> str:
        return f"https://{self.host}" + ("" if self.port is None else f":{self.port}")

    def encode(self) -> bytes:
        """The content of `DeviceToken.token`."""
        port = b"" if self.port is None else b"%d" % self.port
        parts = (self.host.encode(), port, self.path.encode(), self.auth, self.p256dh)
        return b"".join(map(short, parts))

    @property
    def device_token(self) -> DeviceToken:
        return DeviceToken(PushProvider.WEB_PUSH, self.encode())


def web_push_token(token: bytes) -> WebPushToken | None:
    """Parse the content of a Web Push `DeviceToken.token`; None if the bytes are not one."""
    try:
        value, at = _read_web_push(token, 0)
    except Malformed:
        return None
    return value if at == len(token) else None


def web_push_origin(token: bytes) -> str:
    """The origin in the content of a Web Push token that has been checked: `https://host[:port]`."""
    host, at = read_short(token, 0)
    port, _ = read_short(token, at)
    return "https://" + (host + (b":" + port if port else b"")).decode()


def encode_device_token(token: DeviceToken) -> bytes:
    provider: bytes = token.provider.value
    return provider + (token.token if token.provider is PushProvider.WEB_PUSH else short(token.token))


def read_device_token(data: bytes, at: int) -> tuple[DeviceToken, int]:
    name, at = read_bytes(data, at, 2)
    provider = _PROVIDERS.get(name)
    if provider is None:
        raise Malformed
    if provider is PushProvider.WEB_PUSH:
        _, end = _read_web_push(data, at)
        return DeviceToken(provider, data[at:end]), end
    token, at = read_short(data, at)
    return DeviceToken(provider, token), at


def format_device_token(token: DeviceToken) -> str:
    if token.provider is not PushProvider.WEB_PUSH:
        return f"{_NAMES[token.provider]} {token.token.decode('latin-1')}"
    value = web_push_token(token.token)
    if value is None:
        raise ValueError("not a Web Push token")
    auth, key = base64url(value.auth).decode(), base64url(value.p256dh).decode()
    return f"webpush {value.origin}{value.path} {auth} {key}"


def parse_device_token(text: str) -> DeviceToken | None:
    """Parse the text form; None if the text is not a device token."""
    if text == _NULL_TEXT:
        return DeviceToken(PushProvider.APNS_NULL, text.split(" ")[1].encode())
    apns = _APNS_TEXT.fullmatch(text)
    if apns is not None:
        provider = _BY_NAME.get(apns[1])
        return None if provider is None or len(apns[2]) > 255 else DeviceToken(provider, apns[2].encode())
    web_push = _TEXT.fullmatch(text)
    if web_push is None:
        return None
    try:
        parts = [(part or "").encode("ascii") for part in web_push.groups()]
        encoded = b"".join(map(short, [*parts[:3], *map(from_base64url, parts[3:])]))
    except (ValueError, IndexError):  # a part is no ASCII, no base64, or longer than 255 bytes
        return None
    return None if web_push_token(encoded) is None else DeviceToken(PushProvider.WEB_PUSH, encoded)


def _read_web_push(data: bytes, at: int) -> tuple[WebPushToken, int]:
    """Read short(host) short(port) short(path) short(auth) short(p256dh). A port of no bytes stands for 443."""
    host, at = read_short(data, at)
    port, at = read_short(data, at)
    path, at = read_short(data, at)
    auth, at = read_short(data, at)
    p256dh, at = read_short(data, at)
    if not _HOST.fullmatch(host) or not _PATH.fullmatch(path) or len(auth) != 16 or public_key(p256dh) is None:
        raise Malformed
    if port and (not _PORT.fullmatch(port) or int(port) > 65535):
        raise Malformed
    return WebPushToken(host.decode(), int(port) if port else None, path.decode(), auth, p256dh), at
