"""The search for secrets in what a router shows: log lines, spans, metrics, pages."""

import base64
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping

from weir.client.ntf import NtfClient
from weir.client.smp import SmpClient


class Secrets:
    """The secrets that must not be found, and the forms in which they might be written."""

    def __init__(self) -> None:
        self.found: list[tuple[str, bytes]] = []
        self.addresses: list[bytes] = []

    def add(self, name: str, raw: bytes) -> None:
        assert len(raw) >= 12, name  # shorter ones would be found by chance
        self.found.append((name, raw))

    def add_client(self, client: SmpClient | NtfClient) -> None:
        self.add("session id", client.session.session_id)
        assert client.connection._transport is not None
        host, port = client.connection._transport.get_extra_info("sockname")
        self.addresses += [f"{host}:{port}".encode(), f"'{host}', {port}".encode()]

    def spellings(self) -> Iterator[tuple[str, bytes]]:
        for address in self.addresses:
            yield "client's address", address
        for name, raw in self.found:
            yield name, raw
            yield f"{name}, hexadecimal", raw.hex().encode()
            # A run of base64 that does not depend on where it begins.
            for url in (base64.urlsafe_b64encode, base64.b64encode):
                yield f"{name}, base64", url(raw).rstrip(b"=")[: len(raw)]
            yield f"{name}, as Python shows it", repr(raw)[2:-1].encode()

    def leaks(self, seen: Mapping[str, bytes]) -> set[str]:
        """What is found, and where. `seen` has the texts of all places."""
        return {
            f"{name} in {place}"
            for place, text in seen.items()
            for name, spelling in self.spellings()
            if spelling in text
        }


def pages(http: str, metrics: str) -> dict[str, bytes]:
    """Everything that a router serves over HTTP. The arguments are the URLs of its page and its metrics."""
    found = {}
    page, metrics = http.rstrip("/"), metrics.removesuffix("/metrics")
    for path in ("/", "/status.json", "/metrics", "/metrics/edge", "/healthz", "/readyz", "/nothing/here"):
        server = metrics if path.startswith("/metrics") else page
        try:
            with urllib.request.urlopen(server + path, timeout=10) as response:
                found[path] = response.read()
        except urllib.error.HTTPError as error:
            found[path] = error.read()
    return found
