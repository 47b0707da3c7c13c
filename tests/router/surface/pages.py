"""A page of its own for a test, beside those that an edge serves."""

from weir.router.edge import Edge
from weir.router.surface.http import site
from weir.surface.http import HttpServer, serve_page
from weir.transport.server import bind_shared


async def start_http(edge: Edge) -> HttpServer:
    return await serve_page(site(edge), edge.config.http, bind_shared)
