"""The few calls the operator makes to the API server, on one session."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

import aiohttp

from weir_operator import names
from weir_operator.connection import login, open_session
from weir_operator.kinds import KINDS
from weir_operator.model import Manifest

_APPLY = "application/apply-patch+yaml"
_MERGE = "application/merge-patch+json"
_JSON = "application/json"
_LIMIT = aiohttp.ClientTimeout(total=30)


class ApiError(Exception):
    """The API server refused; the message is its own."""

    def __init__(self, status: int, reason: str, message: str, what: str) -> None:
        super().__init__(f"{what}: {message or reason or status}")
        self.status = status
        self.reason = reason
        self.message = message


class Api:
    def __init__(self) -> None:
        self._session: aiohttp.ClientSession | None = None
        self._server = ""

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def apply(self, manifest: Manifest, *, force: bool) -> Manifest:
        """Server-side apply. Without force, fields that somebody else set otherwise are a conflict (409)."""
        meta = manifest["metadata"]
        path = KINDS[manifest["kind"]].path(meta["namespace"], meta["name"])
        query = {"fieldManager": names.FIELD_MANAGER, "force": "true" if force else "false"}
        return await self._write("PATCH", path, manifest, _APPLY, query)

    async def create(self, manifest: Manifest) -> Manifest:
        """409 when it exists."""
        path = KINDS[manifest["kind"]].path(manifest["metadata"]["namespace"])
        return await self._write("POST", path, manifest, _JSON, {"fieldManager": names.FIELD_MANAGER})

    async def replace(self, manifest: Manifest) -> Manifest:
        meta = manifest["metadata"]
        path = KINDS[manifest["kind"]].path(meta["namespace"], meta["name"])
        return await self._write("PUT", path, manifest, _JSON, {"fieldManager": names.FIELD_MANAGER})

    async def merge(self, kind: str, namespace: str, name: str, patch: Mapping[str, Any]) -> Manifest:
        path = KINDS[kind].path(namespace, name)
        return await self._write("PATCH", path, patch, _MERGE, {"fieldManager": names.FIELD_MANAGER})

    async def put_status(self, kind: str, namespace: str, name: str, uid: str, status: Mapping[str, Any]) -> Manifest:
        """The whole status; what it no longer names goes away."""
        body = {
            "apiVersion": names.API_VERSION,
            "kind": kind,
            "metadata": {"name": name, "namespace": namespace, "uid": uid},
            "status": status,
        }
        path = KINDS[kind].path(namespace, name) + "/status"
        query = {"fieldManager": names.FIELD_MANAGER, "force": "true"}
        return await self._write("PATCH", path, body, _APPLY, query)

    async def get(self, kind: str, namespace: str, name: str) -> Manifest | None:
        try:
            return await self._call("GET", KINDS[kind].path(namespace, name))
        except ApiError as error:
            if error.status == 404:
                return None
            raise

    async def list_all(self, kind: str, namespace: str | None, labels: Mapping[str, str]) -> tuple[list[Manifest], int]:
        """In pages, so that a large cluster does not cost a large moment; with the version they are all of."""
        found: list[Manifest] = []
        query = {"labelSelector": _selector(labels), "limit": "250"}
        while True:
            page = await self._call("GET", KINDS[kind].path(namespace), query=query)
            found += page["items"]
            if not page["metadata"].get("continue"):
                return found, int(page["metadata"]["resourceVersion"])
            query["continue"] = page["metadata"]["continue"]

    async def list_some(self, kind: str, namespace: str, labels: Mapping[str, str], most: int) -> list[Manifest]:
        query = {"labelSelector": _selector(labels), "limit": str(most)}
        found: list[Manifest] = (await self._call("GET", KINDS[kind].path(namespace), query=query))["items"]
        return found

    async def served(self, kind: str, namespace: str | None) -> None:
        """Raises until the server really serves a kind: a new CRD is listed before its storage is up."""
        await self._call("GET", KINDS[kind].path(namespace), query={"limit": "1"})

    async def delete(self, kind: str, namespace: str, name: str, uid: str, *, foreground: bool = False) -> None:
        """Only that very object; quietly when it is gone or another has its name."""
        options = {
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "propagationPolicy": "Foreground" if foreground else "Background",
            "preconditions": {"uid": uid},
        }
        try:
            await self._write("DELETE", KINDS[kind].path(namespace, name), options, _JSON, {})
        except ApiError as error:
            if error.status not in (404, 409):
                raise

    async def groups(self) -> frozenset[str]:
        """API groups, and group/version pairs, that the server has."""
        listed = (await self._call("GET", "/apis"))["groups"]
        return frozenset(_names(listed))

    async def resources(self, api_version: str) -> frozenset[str]:
        """Kinds of one API version; none when there is no such API."""
        try:
            listed = (await self._call("GET", f"/apis/{api_version}"))["resources"]
        except ApiError as error:
            if error.status == 404:
                return frozenset()
            raise
        return frozenset(resource["kind"] for resource in listed)

    async def _write(
        self, method: str, path: str, body: Mapping[str, Any], content_type: str, query: Mapping[str, str]
    ) -> Manifest:
        data = json.dumps(body, separators=(",", ":")).encode()
        return await self._call(method, path, data=data, content_type=content_type, query=query)

    async def _call(
        self,
        method: str,
        path: str,
        *,
        data: bytes | None = None,
        content_type: str = _JSON,
        query: Mapping[str, str] | None = None,
    ) -> Manifest:
        for fresh in (False, True):
            session = await self._login(fresh)
            async with session.request(
                method,
                self._server + path,
                data=data,
                params=query,
                headers={"Content-Type": content_type, "Accept": _JSON},
                timeout=_LIMIT,
            ) as response:
                text = await response.read()
                if response.status == 401 and not fresh:
                    continue
                if response.status >= 400:
                    raise _error(response.status, text, f"{method} {path}")
                found: Manifest = json.loads(text)
                return found
        raise AssertionError("unreachable")

    async def _login(self, fresh: bool) -> aiohttp.ClientSession:
        if fresh:
            await self.close()
        if self._session is None:
            info = login()
            self._server = info.server.rstrip("/")
            self._session = open_session(info, limit=16)
        return self._session


def _selector(labels: Mapping[str, str]) -> str:
    return ",".join(f"{key}={value}" for key, value in labels.items())


def _names(groups: Iterable[Mapping[str, Any]]) -> Iterable[str]:
    for group in groups:
        yield group["name"]
        for version in group["versions"]:
            yield version["groupVersion"]


def _error(status: int, text: bytes, what: str) -> ApiError:
    try:
        body = json.loads(text)
        return ApiError(status, str(body.get("reason", "")), str(body.get("message", "")), what)
    except (ValueError, AttributeError):
        return ApiError(status, "", "", what)
