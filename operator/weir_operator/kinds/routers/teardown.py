"""Deletion of a router in order: the pods drain and stop, then Redis, then the rest, and the finalizer last."""

from __future__ import annotations

from weir_operator.kinds import names
from weir_operator.kinds.routers.model import Router, embedded_settings
from weir_operator.kube.api import Api, ApiError
from weir_operator.kube.cache import Cache
from weir_operator.kube.objects import Key

# The objects of one stage are gone before the next stage begins. Autoscalers come first, or they would start pods.
STAGES: tuple[tuple[str, ...], ...] = (
    ("HorizontalPodAutoscaler", "ScaledObject"),
    ("Deployment",),
    ("StatefulSet",),
)
_CHECK_SECONDS = 2.0


class Teardown:
    def __init__(self, api: Api, cache: Cache) -> None:
        self._api = api
        self._cache = cache

    async def step(self, key: Key, router: Router) -> float | None:
        """Delete what may be deleted now. Return the seconds until the next step, or None when this was the last."""
        if names.FINALIZER not in router.finalizers:
            return None
        for kinds in STAGES:
            if await self._remove(key, router, kinds):
                return _CHECK_SECONDS
        for name in kept_secrets_to_delete(router):
            seen = self._cache.child(key, "Secret", name)
            if seen is not None and not seen.deleting:
                await self._api.delete("Secret", key.namespace, name, seen.uid)
        await self._release(router)
        return None

    async def _remove(self, key: Key, router: Router, kinds: tuple[str, ...]) -> bool:
        """Delete the children of these kinds. Return whether one of them still exists."""
        waiting = False
        for (kind, name), seen in list(self._cache.children(key).items()):
            if kind not in kinds or router.uid not in seen.owners:
                continue
            waiting = True
            if not seen.deleting:
                await self._api.delete(kind, key.namespace, name, seen.uid, foreground=True)
        return waiting

    async def _release(self, router: Router) -> None:
        """Take the finalizer off. Kubernetes then deletes the other children, by their owner references."""
        patch = {
            "metadata": {
                "resourceVersion": router.resource_version,
                "finalizers": [one for one in router.finalizers if one != names.FINALIZER],
            }
        }
        try:
            await self._api.merge(router.kind, router.namespace, router.name, patch)
        except ApiError as error:
            if error.status != 404:
                raise


def kept_secrets_to_delete(router: Router) -> list[str]:
    """Names of the Secrets that would outlive the router, and that its spec wants deleted."""
    found = []
    embedded = embedded_settings(router)
    identity = router.spec["identity"]
    if identity["whenDeleted"] == "Delete" and "secretName" not in identity:
        found.append(names.identity(router.name))
    # The key of Web Push is a part of the address, too.
    web_push = router.spec.get("push", {}).get("webPush")
    if web_push is not None and identity["whenDeleted"] == "Delete" and "secretName" not in web_push:
        found.append(names.vapid(router.name))
    if embedded is not None and embedded["storage"]["whenDeleted"] == "Delete":
        found.append(names.store(router.name))
    return found
