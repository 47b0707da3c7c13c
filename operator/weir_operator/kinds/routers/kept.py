"""Secrets that outlive their router: created once, adopted when they exist, never overwritten."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from weir_operator.kinds import names
from weir_operator.kinds.metadata import child, labels
from weir_operator.kinds.routers.model import Router
from weir_operator.kinds.secrets import Data
from weir_operator.kube.api import Api, ApiError
from weir_operator.kube.cache import Cache
from weir_operator.kube.conditions import Problem
from weir_operator.kube.objects import Key, Manifest

_GIVEN_SECONDS = 4.0  # a Secret named in the spec is not watched, because it carries no label of ours


@dataclass(frozen=True, slots=True)
class Given:
    """A Secret that the spec names, without the key of a CA."""

    read_at: float
    found: bool
    data: Data
    has_ca_key: bool


class KeptSecrets:
    """`component` is that of the router's pods, for the labels."""

    def __init__(self, component: str, api: Api, cache: Cache) -> None:
        self._component = component
        self._api = api
        self._cache = cache
        self._given: dict[tuple[Key, str], Given] = {}

    def forget(self, key: Key) -> None:
        for known in [one for one in self._given if one[0] == key]:
            del self._given[known]

    def facts(self, key: Key, name: str) -> Mapping[str, Any] | None:
        """The facts of a Secret that the watch shows."""
        seen = self._cache.child(key, "Secret", name)
        return seen.facts if seen else None

    async def live(self, router: Router, name: str) -> Manifest | None:
        return await self._api.get("Secret", router.namespace, name)

    async def live_status(self, router: Router, name: str) -> str | None:
        """A field of the status, read from the API server, because the watch may be behind."""
        if router.just_read:
            return router.status.get(name)
        fresh = await self._api.get(router.kind, router.namespace, router.name)
        found: str | None = ((fresh or {}).get("status") or {}).get(name)
        return found

    async def given(self, key: Key, router: Router, name: str) -> Given:
        """A Secret that the spec names."""
        known = self._given.get((key, name))
        now = time.monotonic()
        if known is not None and now - known.read_at < _GIVEN_SECONDS:
            return known
        live = await self.live(router, name)
        data = dict((live or {}).get("data") or {})
        has_ca_key = data.pop(names.CA_KEY, None) is not None
        self._given[key, name] = Given(now, live is not None, data, has_ca_key)
        return self._given[key, name]

    async def create(
        self, key: Key, router: Router, name: str, data: Mapping[str, str], notes: Mapping[str, str] | None = None
    ) -> Data | Problem:
        part = self._component
        manifest = child(
            router, "v1", "Secret", name, part, owned=False, annotations=notes, type="Opaque", data=dict(data)
        )
        try:
            made = await self._api.create(manifest)
        except ApiError as error:
            if error.status != 409:
                raise
            live = await self.live(router, name)
            if live is None:
                raise
            return self.adopt(key, router, live, name)
        return dict(self._cache.remember(key, "Secret", made).facts["data"])

    async def merge(self, key: Key, router: Router, name: str, patch: Mapping[str, Any]) -> Mapping[str, Any]:
        """Change a Secret. Return its facts."""
        body = await self._api.merge("Secret", router.namespace, name, patch)
        return self._cache.remember(key, "Secret", body).facts

    async def change(
        self, key: Key, router: Router, name: str, part: str, value: str, annotations: Mapping[str, str | None]
    ) -> Mapping[str, Any] | None:
        """Replace a value that the watch shows. Return the Secret's facts. None: the Secret has another value already.
        The watch is behind then, and will start another round."""
        facts = self.facts(key, name)
        live = await self.live(router, name)
        if facts is None or live is None or (live.get("data") or {}).get(part) != facts["data"].get(part):
            return None
        version = live["metadata"]["resourceVersion"]
        patch = {"metadata": {"resourceVersion": version, "annotations": dict(annotations)}, "data": {part: value}}
        return await self.merge(key, router, name, patch)

    async def label(self, router: Router, name: str) -> Manifest:
        """Put back labels that somebody took off."""
        patch = {"metadata": {"labels": labels(router, self._component)}}
        return await self._api.merge("Secret", router.namespace, name, patch)

    def adopt(self, key: Key, router: Router, live: Manifest, name: str) -> Data | Problem:
        if not labelled(live, router):
            return Problem("NotOurs", f"there is a Secret {name} that is not the operator's; rename the router")
        return dict(self._cache.remember(key, "Secret", live).facts["data"])


def labelled(live: Manifest, router: Router) -> bool:
    marks: Mapping[str, Any] = live["metadata"].get("labels") or {}
    return marks.get(names.ROUTER) == router.name and marks.get(names.MANAGED_BY) == names.MANAGER
