"""Whole edges of a notification router in this process, beside each other on one Redis."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tests.notifier.router import LIMIT
from weir.client.ntf import NtfClient
from weir.notifier.config import NotifierConfig
from weir.notifier.edge import Edge
from weir.transport.server import bind


class Fleet:
    def __init__(self, config: NotifierConfig) -> None:
        self.config = config
        self.edges: list[Edge] = []
        self.clients: list[NtfClient] = []

    async def add(self, **changes: Any) -> Edge:
        edge = await Edge.start(replace(self.config, **changes), socks=[bind("127.0.0.1", 0)])
        self.edges.append(edge)
        return edge

    def __getitem__(self, index: int) -> Edge:
        return self.edges[index]

    async def client(self, edge: int = 0, **options: Any) -> NtfClient:
        address = self.edges[edge].address.partition("?")[0]
        client = await NtfClient.connect(address, reply_timeout=LIMIT, **options)
        self.clients.append(client)
        await client.ping()
        return client

    async def close(self) -> None:
        for client in self.clients:
            client.connection.abort()
        for edge in self.edges:
            await edge.close()
