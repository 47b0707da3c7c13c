"""The providers that a configuration has what it needs for."""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import Final

from weir.crypto import p256
from weir.crypto.pem import UnusableFile
from weir.notifier.config import NotifierConfig
from weir.notifier.push.apns import Apns, WebTokens
from weir.notifier.push.http.client import Client
from weir.notifier.push.http.exchange import Origin
from weir.notifier.push.http.pool import Pool
from weir.notifier.push.provider import Accepting, Provider
from weir.notifier.push.vapid import VapidFile
from weir.notifier.push.web_push import WebPush
from weir.wire.ntf.types import PushProvider

_APPLE: Final = {
    PushProvider.APNS_PROD: ("production", "api.push.apple.com"),
    PushProvider.APNS_DEV: ("sandbox", "api.sandbox.push.apple.com"),
}


def providers(config: NotifierConfig) -> dict[PushProvider, Provider]:
    """Make them. Raises UnusableFile or OSError for a key or certificate file. Connections are opened when needed."""
    made: dict[PushProvider, Provider] = {PushProvider.APNS_NULL: Accepting()}
    if config.push.allow_test:
        made[PushProvider.APNS_TEST] = Accepting()
    attempt = config.push.timeout / 2  # there may be two
    apns, web_push = config.apns, config.web_push
    if apns.key is not None:
        assert apns.key_id is not None, "the configuration was checked"
        assert apns.team_id is not None
        assert apns.topic is not None
        tokens = WebTokens(p256.load_key(apns.key), key_id=apns.key_id, team_id=apns.team_id)
        for provider, (environment, host) in _APPLE.items():
            if apns.environment in ("both", environment):
                pool = Pool(_context(apns.ca), allow_local=True)  # the operator has chosen the host
                made[provider] = Apns(Client(pool, attempt), _origin(apns.host or host), tokens, apns.topic)
    if web_push.vapid_key is not None:
        # A device may have any push service, so a CA of the operator's own comes beside the system's.
        pool = Pool(_context(web_push.ca, and_the_systems=True), allow_local=web_push.allow_local)
        made[PushProvider.WEB_PUSH] = WebPush(Client(pool, attempt), VapidFile(web_push.vapid_key, web_push.subject))
    return made


def _origin(host: str) -> Origin:
    name, _, port = host.partition(":")
    return Origin(name, int(port) if port.isdigit() else 443)


def _context(ca: Path | None, *, and_the_systems: bool = False) -> ssl.SSLContext:
    if ca is None:
        return ssl.create_default_context()
    try:
        context = ssl.create_default_context(cafile=None if and_the_systems else str(ca))
        context.load_verify_locations(cafile=str(ca))
    except ssl.SSLError:
        raise UnusableFile(f"{ca.name}: no CA certificates in PEM form") from None
    return context
