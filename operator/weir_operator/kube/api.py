"""The few calls that the operator makes to the API server, over the official client's dynamic client.

HTTP, TLS, login, token reload and retries are the library's. This module adds five things: the paths of the kinds it is
given, one field manager for all writes, errors that fit into one line of a log, a new login when the server answers
401, and a fence. The fence is a function that says whether this replica may write. Once the Lease has run out it says
no, and every write that was not sent yet fails.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import aiohttp
from kubernetes.aio.client import ApiException
from kubernetes.aio.dynamic import DynamicClient

from weir_operator.kube.login import Login
from weir_operator.kube.objects import Kind, Manifest

_APPLY = "application/apply-patch+yaml"
_MERGE = "application/merge-patch+json"
_JSON = "application/json"
_SECONDS = 30.0
_TIMEOUT = aiohttp.ClientTimeout(total=_SECONDS)
_PAGE = 250


class ApiError(Exception):
    """A refusal by the API server, in the server's own words."""

    def __init__(self, status: int, reason: str, message: str, request: str) -> None:
        super().__init__(f"{request}: {message or reason or status}")
        self.status = status
        self.reason = reason
        self.message = message


# Errors after which a call is worth repeating later: refusals of the API server, and failures on the way to it.
API_ERRORS = (ApiError, aiohttp.ClientError, OSError, TimeoutError)


def _always() -> bool:
    return True


class Api:
    """One login to the API server, shared by all callers."""

    def __init__(
        self, login: Login, kinds: Mapping[str, Kind], manager: str, may_write: Callable[[], bool] = _always
    ) -> None:
        self._login = login
        self._kinds = kinds
        self._manager = manager
        self._may_write = may_write
        self._client: DynamicClient | None = None
        self._connecting = asyncio.Lock()
        self._refused: dict[DynamicClient, asyncio.TimerHandle] = {}  # still open for calls that began earlier
        self._closing: set[asyncio.Task[None]] = set()

    async def close(self) -> None:
        """Close every connection. The next call opens a new one."""
        clients = [*self._refused, *([self._client] if self._client is not None else [])]
        for timer in self._refused.values():
            timer.cancel()
        self._refused.clear()
        self._client = None
        for client in clients:
            await client.client.close()
        await asyncio.gather(*self._closing)

    async def apply(self, manifest: Manifest, *, force: bool) -> Manifest:
        """Server-side apply. Without force, a field that another manager set to another value is a conflict (409)."""
        path = self._path(manifest)
        return await self._request("PATCH", path, manifest, _APPLY, field_manager=self._manager, force_conflicts=force)

    async def create(self, manifest: Manifest) -> Manifest:
        """Create an object. An object of that name is a conflict (409)."""
        path = self._kinds[manifest["kind"]].path(manifest["metadata"]["namespace"])
        return await self._request("POST", path, manifest, field_manager=self._manager)

    async def replace(self, manifest: Manifest) -> Manifest:
        """Put a whole object in place of the one with its resourceVersion. Any other version is a conflict (409)."""
        return await self._request("PUT", self._path(manifest), manifest, field_manager=self._manager)

    async def merge(self, kind: str, namespace: str, name: str, patch: Mapping[str, Any]) -> Manifest:
        path = self._kinds[kind].path(namespace, name)
        return await self._request("PATCH", path, patch, _MERGE, field_manager=self._manager)

    async def put_status(self, kind: str, namespace: str, name: str, uid: str, status: Mapping[str, Any]) -> Manifest:
        """Apply the whole status: fields that are no longer in `status` are removed."""
        found = self._kinds[kind]
        body = {
            "apiVersion": found.api_version,
            "kind": kind,
            "metadata": {"name": name, "namespace": namespace, "uid": uid},
            "status": status,
        }
        path = found.path(namespace, name) + "/status"
        return await self._request("PATCH", path, body, _APPLY, field_manager=self._manager, force_conflicts=True)

    async def get(self, kind: str, namespace: str, name: str) -> Manifest | None:
        try:
            return await self._request("GET", self._kinds[kind].path(namespace, name))
        except ApiError as error:
            if error.status == 404:
                return None
            raise

    async def list_all(self, kind: str, namespace: str | None, labels: Mapping[str, str]) -> tuple[list[Manifest], int]:
        """All objects, and the resource version of the list. Read in pages, so that no single answer is large."""
        found: list[Manifest] = []
        first: dict[str, Any] = {"label_selector": _selector(labels), "limit": _PAGE}
        options = first
        while True:
            try:
                page = await self._request("GET", self._kinds[kind].path(namespace), **options)
            except ApiError as error:
                if error.status != 410 or options is first:
                    raise
                # The server keeps the snapshot behind a list for some minutes only: read the list from its beginning.
                found, options = [], first
                continue
            found += page["items"]
            if not page["metadata"].get("continue"):
                return found, int(page["metadata"]["resourceVersion"])
            options = {**first, "_continue": page["metadata"]["continue"]}

    async def list_some(self, kind: str, namespace: str, labels: Mapping[str, str], most: int) -> list[Manifest]:
        path = self._kinds[kind].path(namespace)
        page = await self._request("GET", path, label_selector=_selector(labels), limit=most)
        found: list[Manifest] = page["items"]
        return found

    async def served(self, kind: str, namespace: str | None) -> None:
        """Raise unless the server serves a kind. A new CRD is listed before its storage is ready."""
        await self._request("GET", self._kinds[kind].path(namespace), limit=1)

    async def delete(self, kind: str, namespace: str, name: str, uid: str, *, foreground: bool = False) -> None:
        """Delete the object with this uid. Do nothing when it is gone or when another object has its name."""
        options = {
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "propagationPolicy": "Foreground" if foreground else "Background",
            "preconditions": {"uid": uid},
        }
        try:
            await self._request("DELETE", self._kinds[kind].path(namespace, name), options)
        except ApiError as error:
            if error.status not in (404, 409):
                raise

    async def groups(self) -> frozenset[str]:
        """The API groups of the server, and their group/version pairs."""
        listed = (await self._request("GET", "/apis"))["groups"]
        return frozenset(_names(listed))

    async def resources(self, api_version: str) -> frozenset[str]:
        """The kinds of one API version. Empty when the server has no such API."""
        try:
            listed = (await self._request("GET", f"/apis/{api_version}"))["resources"]
        except ApiError as error:
            if error.status == 404:
                return frozenset()
            raise
        return frozenset(resource["kind"] for resource in listed)

    def _path(self, manifest: Manifest) -> str:
        meta = manifest["metadata"]
        return self._kinds[manifest["kind"]].path(meta["namespace"], meta["name"])

    async def _request(
        self, method: str, path: str, body: Mapping[str, Any] | None = None, content_type: str = _JSON, **options: Any
    ) -> Manifest:
        """One request. On 401, log in again and repeat it once: the library rereads a service account's token by
        itself, but not a kubeconfig, whose login may expire too."""
        refused: DynamicClient | None = None
        while True:
            client = await self._connect(refused)
            if method != "GET" and not self._may_write():
                raise ApiError(503, "Fenced", "not sent: this replica no longer holds the lease", f"{method} {path}")
            try:
                found: Manifest = await client.request(
                    method,
                    path,
                    body=body,
                    content_type=content_type,
                    header_params={"Accept": _JSON},
                    serializer=_plain,
                    _request_timeout=_TIMEOUT,
                    **options,
                )
                return found
            except ApiException as error:
                if error.status == 401 and refused is None:
                    refused = client
                    continue
                raise _error(error, f"{method} {path}") from None

    async def _connect(self, refused: DynamicClient | None) -> DynamicClient:
        """The current client; a new one when the current one is the one whose login was refused."""
        async with self._connecting:
            if self._client is not None and self._client is refused:
                # Other calls may still wait for answers over this client, so it is closed when they must have ended.
                later = asyncio.get_running_loop().call_later(_SECONDS, self._close_refused, refused)
                self._refused[refused] = later
                self._client = None
            if self._client is None:
                # The client is not awaited: that would discover every API of the cluster, with a request for each, and
                # keep the result in a file. The paths of all kinds in use are known.
                self._client = DynamicClient(await self._login.open_client())
            return self._client

    def _close_refused(self, client: DynamicClient) -> None:
        del self._refused[client]
        task = asyncio.create_task(client.client.close())
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)


def _plain(_client: DynamicClient, body: Manifest) -> Manifest:
    """Objects stay dictionaries. The library's wrappers would copy each of them."""
    return body


def _selector(labels: Mapping[str, str]) -> str:
    return ",".join(f"{key}={value}" for key, value in labels.items())


def _names(groups: Iterable[Mapping[str, Any]]) -> Iterable[str]:
    for group in groups:
        yield group["name"]
        for version in group["versions"]:
            yield version["groupVersion"]


def _error(error: ApiException, request: str) -> ApiError:
    """The library's own message is several lines long and holds the response's headers and body."""
    try:
        body = json.loads(error.body or "")
        return ApiError(error.status, str(body.get("reason", "")), str(body.get("message", "")), request)
    except (ValueError, AttributeError):
        return ApiError(error.status, "", "", request)
