"""The contents of the SMP router's server page."""

from __future__ import annotations

from collections.abc import Iterator

from weir.config.kinds import show_duration
from weir.router.config import RouterConfig
from weir.surface.page import html
from weir.surface.page.html import Page, Tile

_TILES = (
    Tile("connections", "connections", "clients connected to any edge"),
    Tile("queues", "queues", "stored"),
    Tile("messages", "messages", "waiting for their recipients"),
    Tile("rate", "messages / s", "sent, last three seconds"),
    Tile("services", "services", "with a certificate"),
    Tile("edges", "edges", "serving this address"),
)
_USAGE = "In the SimpleX app: Network & servers → SMP servers → Add server, then scan the code or paste the address."


def render_page(config: RouterConfig, address: str, version: str) -> str:
    hosts = config.transport.hosts
    page = Page(
        kind="SimpleX message router",
        host=hosts[0] if hosts else "SMP router",
        address=address,
        usage=_USAGE,
        tiles=_TILES,
        facts=tuple(_facts(config)),
        information=config.information,
    )
    return html.render_page(page, version)


def _facts(config: RouterConfig) -> Iterator[tuple[str, str]]:
    auth = config.auth
    if not auth.new_queues:
        yield "New queues", "not allowed"
    else:
        yield "New queues", "with a password" if auth.create_password else "open to everybody"
    yield "Messages are kept", f"up to {_days(config.queues.message_ttl)}, {config.queues.quota} a queue"
    yield "Private routing", "forwards messages to other routers" if config.proxy.enable else "off"


def _days(seconds: float) -> str:
    days = seconds / 86400
    return f"{days:g} days" if days > 1 else show_duration(seconds)
