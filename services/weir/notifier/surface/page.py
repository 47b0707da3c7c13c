"""The contents of the NTF router's server page."""

from __future__ import annotations

from collections.abc import Iterator

from weir.notifier.config import NotifierConfig
from weir.surface.page import html
from weir.surface.page.html import Page, Table, Tile

_TILES = (
    Tile("tokens", "devices", "tokens registered"),
    Tile("subscriptions", "subscriptions", "to queues, of all devices"),
    Tile("servers", "SMP servers", "with subscribed queues"),
    Tile("subscribed", "connected", "of those servers, now"),
    Tile("pushed", "pushes", "delivered since the first start"),
    Tile("push_ms", "milliseconds", "until a push service has accepted a push, median"),
    Tile("edges", "edges", "serving this address"),
)
_SERVERS = Table(
    "own_servers",
    "SMP servers of this operator",
    (
        ("server", "server"),
        ("subscribed", "subscribed"),
        ("since", "since"),
        ("count", "subscriptions"),
        ("drift", "drift"),
        ("last_notification", "last notification"),
    ),
)
_PUSHES = Table(
    "pushes",
    "Pushes since the first start",
    (
        ("provider", "push service"),
        ("delivered", "delivered"),
        ("retry", "to be repeated"),
        ("failed", "failed"),
        ("invalid", "device gone"),
        ("waiting", "waiting now"),
    ),
)
_USAGE = (
    "Devices register here to be woken up when a message comes. Paste the address into an app that lets you choose."
)


def render_page(config: NotifierConfig, address: str, version: str) -> str:
    hosts = config.transport.hosts
    page = Page(
        kind="SimpleX notification router",
        host=hosts[0] if hosts else "NTF router",
        address=address,
        usage=_USAGE,
        tiles=_TILES,
        facts=tuple(_facts(config)),
        information=config.information,
        tables=(_SERVERS, _PUSHES),
    )
    return html.render_page(page, version)


def _facts(config: NotifierConfig) -> Iterator[tuple[str, str]]:
    yield "Apple devices", f"app {config.apns.topic}" if config.apns.key else "not supported here"
    yield "Web Push and UnifiedPush", "supported" if config.web_push.vapid_key else "not supported here"
