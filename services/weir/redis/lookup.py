"""Look up a node's name before something else connects to it.

uvloop's `create_connection` looks up the name in a future of its own. When its caller gives up first, nobody awaits the
future any more, and a failure of the lookup is logged as "Future exception was never retrieved". A lookup that is
awaited directly is cancelled together with its caller. So a name that does not resolve fails here, and
`create_connection` looks up only names that resolve.
"""

import asyncio
import socket

from weir.redis.url import Node


async def look_up(node: Node, limit: float) -> None:
    """Raise OSError when the node's name has no address, or none within `limit` seconds."""
    if node.path:
        return
    async with asyncio.timeout(limit):
        try:
            await asyncio.get_running_loop().getaddrinfo(node.host, node.port, type=socket.SOCK_STREAM)
        except UnicodeError:  # DNS cannot encode the name, e.g. a..b
            raise OSError("not a host name") from None
