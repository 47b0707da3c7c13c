"""Routers for tables, and an API server in a dictionary, so that a reconciliation reads as a transcript."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Mapping
from typing import Any

from weir_operator.kinds import names
from weir_operator.kinds.registry import DEFINITIONS, ROUTER_KINDS, read
from weir_operator.kinds.resources import RESOURCES, facts, owner_of
from weir_operator.kinds.routers.model import Defaults, Observed, Router
from weir_operator.kinds.routers.observer import Observation
from weir_operator.kinds.routers.reconcile import RouterReconciler, Surroundings
from weir_operator.kube.api import Api, ApiError
from weir_operator.kube.cache import Cache
from weir_operator.kube.defaults import with_defaults
from weir_operator.kube.events import Recorder
from weir_operator.kube.login import Login
from weir_operator.kube.objects import Key, Manifest

NAMESPACE = "ns"


def router_of(kind: str = names.SMP_ROUTER, name: str = "r", **spec: Any) -> Router:
    return Router(kind, NAMESPACE, name, "uid-r", 1, with_defaults(DEFINITIONS[kind].spec(), spec))


def desired_state(router: Router, observed: Observed) -> list[Manifest]:
    return ROUTER_KINDS[router.kind].desired_state(router, observed)


def by_name(manifests: list[Manifest]) -> dict[tuple[str, str], Manifest]:
    return {(one["kind"], one["metadata"]["name"]): one for one in manifests}


class MemoryApi(Api):
    """Answers as an API server does. `calls` holds the requests in their order."""

    def __init__(self) -> None:
        super().__init__(Login("test"), RESOURCES, names.MANAGER)
        self.objects: dict[tuple[str, str], Manifest] = {}
        self.calls: list[str] = []
        self._versions = itertools.count(1)
        self.refuse: dict[str, ApiError] = {}  # by "verb Kind/name"

    def put(self, body: Mapping[str, Any]) -> Manifest:
        kept: Manifest = copy.deepcopy(dict(body))
        meta = kept["metadata"]
        known = self.objects.get((kept["kind"], meta["name"]))
        meta.setdefault("namespace", NAMESPACE)
        meta["uid"] = known["metadata"]["uid"] if known else f"uid-{next(self._versions)}"
        meta["resourceVersion"] = str(next(self._versions))
        self.objects[kept["kind"], meta["name"]] = kept
        return copy.deepcopy(kept)

    def _ask(self, verb: str, kind: str, name: str) -> Manifest | None:
        self.calls.append(f"{verb} {kind}/{name}")
        if self.calls[-1] in self.refuse:
            raise self.refuse[self.calls[-1]]
        return self.objects.get((kind, name))

    async def apply(self, manifest: Manifest, *, force: bool) -> Manifest:
        known = self._ask("apply", manifest["kind"], manifest["metadata"]["name"])
        return self.put(_merged(known or {}, manifest))

    async def create(self, manifest: Manifest) -> Manifest:
        if manifest["kind"] == "Event":
            return manifest
        if self._ask("create", manifest["kind"], manifest["metadata"]["name"]) is not None:
            raise ApiError(409, "AlreadyExists", "already exists", "create")
        return self.put(manifest)

    async def replace(self, manifest: Manifest) -> Manifest:
        self._ask("replace", manifest["kind"], manifest["metadata"]["name"])
        return self.put(manifest)

    async def merge(self, kind: str, namespace: str, name: str, patch: Mapping[str, Any]) -> Manifest:
        known = self._ask("merge", kind, name)
        if known is None:
            raise ApiError(404, "NotFound", "not found", "merge")
        return self.put(_merged(known, patch))

    async def put_status(self, kind: str, namespace: str, name: str, uid: str, status: Mapping[str, Any]) -> Manifest:
        known = self._ask("status", kind, name)
        if known is None:
            raise ApiError(404, "NotFound", "not found", "status")
        return self.put({**known, "status": status})

    async def get(self, kind: str, namespace: str, name: str) -> Manifest | None:
        return copy.deepcopy(self._ask("get", kind, name))

    async def list_some(self, kind: str, namespace: str, labels: Mapping[str, str], most: int) -> list[Manifest]:
        self.calls.append(f"list {kind}")
        return []

    async def delete(self, kind: str, namespace: str, name: str, uid: str, *, foreground: bool = False) -> None:
        self._ask("delete", kind, name)
        self.objects.pop((kind, name), None)


def _merged(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    result = copy.deepcopy(dict(old))
    for key, value in new.items():
        if isinstance(value, Mapping):
            known = result.get(key)
            result[key] = _merged(known if isinstance(known, Mapping) else {}, value)
        elif value is None:
            result.pop(key, None)
        else:
            result[key] = copy.deepcopy(value)
    return result


class Town:
    """One router, the API server, and the reconciler of its kind."""

    def __init__(self, kind: str = names.SMP_ROUTER, *, api: MemoryApi | None = None, **spec: Any) -> None:
        """With `api`, the router is there already."""
        self.api = api or MemoryApi()
        self.cache = Cache(read, owner_of, facts)
        self.surroundings = Surroundings(Defaults("weir:test"), "operators")
        self.observations: dict[Key, Observation] = {}
        self.recorded: list[tuple[str, str]] = []
        self.warnings: list[str] = []
        self.key = Key(kind, NAMESPACE, "r")
        recorder = Recorder(self.api, names.API_VERSION, names.MANAGER, "test")
        recorder.record = self._record  # type: ignore[method-assign, assignment]
        self.reconciler = RouterReconciler(
            ROUTER_KINDS[kind], read, self.api, self.cache, recorder, self.surroundings, self.observations
        )
        if api is None:
            meta = {"name": "r", "generation": 1}
            self.api.put({"apiVersion": names.API_VERSION, "kind": kind, "metadata": meta, "spec": spec})
        self.watch()

    def successor(self) -> Town:
        """A new operator, which has listed everything and observed nothing."""
        again = Town(self.key.kind, api=self.api)
        for (kind, _), body in self.api.objects.items():
            if kind != self.key.kind:
                again.cache.child_event(kind, body, gone=False)
        return again

    def _record(self, _key: Key, _uid: str, reason: str, message: str, *, warning: bool = False) -> None:
        self.recorded.append((reason, message))
        if warning:
            self.warnings.append(reason)

    @property
    def body(self) -> Manifest:
        return self.api.objects[self.key.kind, "r"]

    @property
    def status(self) -> dict[str, Any]:
        return self.body.get("status") or {}

    def condition(self, kind: str) -> tuple[str, str]:
        one = next(one for one in self.status["conditions"] if one["type"] == kind)
        return one["status"], one["reason"]

    def change(self, **spec: Any) -> None:
        self.body["spec"] = {**self.body["spec"], **spec}
        self.body["metadata"]["generation"] += 1
        self.api.put(self.body)
        self.watch()

    def annotate(self, **annotations: str) -> None:
        notes = {f"weir.dev/{key.replace('_', '-')}": value for key, value in annotations.items()}
        self.api.put(_merged(self.body, {"metadata": {"annotations": notes}}))
        self.watch()

    def lose(self, kind: str, name: str) -> None:
        """Somebody deletes a child, and the watch tells."""
        body = self.api.objects.pop((kind, name))
        self.cache.child_event(kind, body, gone=True)

    def edit(self, kind: str, name: str, patch: Mapping[str, Any]) -> None:
        self.api.put(_merged(self.api.objects[kind, name], patch))
        self.cache.child_event(kind, self.api.objects[kind, name], gone=False)

    def watch(self) -> None:
        if (self.key.kind, "r") in self.api.objects:
            self.cache.object_event(self.key.kind, self.body, gone=False)

    async def reconcile(self) -> list[str]:
        """One reconciliation; the calls it made."""
        self.api.calls.clear()
        await self.reconciler.reconcile(self.key)
        return list(self.api.calls)
