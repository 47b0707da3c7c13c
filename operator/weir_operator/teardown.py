"""Deletion in order: edges drain and go, then Redis, then the rest; last the finalizer."""

from __future__ import annotations

from weir_operator import names
from weir_operator.api import Api, ApiError
from weir_operator.cache import Cache, Key
from weir_operator.model import Router

# Each stage is gone before the next begins. Autoscalers first, or they would bring edges back.
STAGES: tuple[tuple[str, ...], ...] = (
    ("HorizontalPodAutoscaler", "ScaledObject"),
    ("Deployment",),
    ("StatefulSet",),
)
_LOOK_AGAIN_SECONDS = 2.0


class Teardown:
    def __init__(self, api: Api, cache: Cache) -> None:
        self._api = api
        self._cache = cache

    async def step(self, key: Key, router: Router) -> float | None:
        """As far as it gets now; when something has to go first, when to look again."""
        if names.FINALIZER not in router.finalizers:
            return None
        for kinds in STAGES:
            if await self._remove(key, router, kinds):
                return _LOOK_AGAIN_SECONDS
        for name in kept_secrets_to_delete(router):
            seen = self._cache.child(key, "Secret", name)
            if seen is not None and not seen.deleting:
                await self._api.delete("Secret", key.namespace, name, seen.uid)
        await self._release(router)
        return None

    async def _remove(self, key: Key, router: Router, kinds: tuple[str, ...]) -> bool:
        """Whether anything of these kinds is still there."""
        waiting = False
        for (kind, name), seen in list(self._cache.children(key).items()):
            if kind not in kinds or router.uid not in seen.owners:
                continue
            waiting = True
            if not seen.deleting:
                await self._api.delete(kind, key.namespace, name, seen.uid, foreground=True)
        return waiting

    async def _release(self, router: Router) -> None:
        """The garbage collector takes what is left, by its owner references."""
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
    """Secrets that outlive a router unless its spec says otherwise."""
    found = []
    identity = router.spec["identity"]
    if identity["whenDeleted"] == "Delete" and "secretName" not in identity:
        found.append(names.identity(router.name))
    if router.embedded is not None and router.embedded["storage"]["whenDeleted"] == "Delete":
        found.append(names.store(router.name))
    return found
