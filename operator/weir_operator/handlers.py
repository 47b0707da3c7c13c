"""kopf's side: watches of our kinds and of their children, each event a reason to look at one object."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import kopf

from weir_operator import names
from weir_operator.cache import Cache, Key
from weir_operator.connection import login, open_session
from weir_operator.kinds import CHILD_KINDS, KINDS, OPTIONAL_KINDS, Kind

# Children come in bunches while a router is made: one look for all of them.
_CHILD_DELAY = 0.3
_CHILDREN_ONLY = f"{names.MANAGED_BY}={names.MANAGER}"


def watched_children(apis: frozenset[str]) -> list[Kind]:
    optional = [kind for api, kind in OPTIONAL_KINDS.items() if api in apis]
    return [KINDS[name] for name in (*CHILD_KINDS, *optional)]


def registry(cache: Cache, wake: Callable[[Key, float], None], apis: frozenset[str]) -> kopf.OperatorRegistry:
    """Low-level events only: kopf then writes nothing into objects, and one look makes everything right."""
    found = kopf.OperatorRegistry()

    @kopf.on.login(registry=found)
    async def logged_in(**_: Any) -> kopf.AiohttpSession:
        info = login()
        return kopf.AiohttpSession(
            aiohttp_session=open_session(info, limit=0),
            server=info.server,
            default_namespace=info.default_namespace,
        )

    def watch(kind: Kind, seen: Callable[[Mapping[str, Any], bool], Key | None], delay: float) -> None:
        @kopf.on.event(kind.group, kind.version, kind.plural, registry=found, id=kind.plural)
        async def changed(type: str | None, body: Mapping[str, Any], **_: Any) -> None:
            key = seen(body, type == "DELETED")
            if key is not None:
                wake(key, delay)

    for name in names.PLURALS:
        watch(KINDS[name], lambda body, gone, name=name: cache.object_event(name, body, gone), 0.0)  # type: ignore[misc]
    for kind in watched_children(apis):
        watch(kind, lambda body, gone, name=kind.name: cache.child_event(name, body, gone), _CHILD_DELAY)  # type: ignore[misc]
    return found


def settings(apis: frozenset[str]) -> kopf.OperatorSettings:
    made = kopf.OperatorSettings()
    made.scanning.disabled = True  # would ask for rights on all CRDs and namespaces
    made.posting.enabled = False
    made.peering.standalone = True
    made.watching.server_timeout = 290
    made.queueing.idle_timeout = 1.0
    made.persistence.diffbase_storage = _NoDiff()
    made.persistence.progress_storage = _NoProgress()
    for kind in watched_children(apis):
        made.watching.label_selectors[kind.group, kind.version, kind.plural] = _CHILDREN_ONLY
    return made


class _NoDiff(kopf.DiffBaseStorage):
    """Every object is compared by its own look: kopf need not copy each one to compare it as well."""

    def build(self, **_: Any) -> kopf.BodyEssence:
        return kopf.BodyEssence()

    def fetch(self, **_: Any) -> kopf.BodyEssence | None:
        return None

    def store(self, **_: Any) -> None:
        pass


class _NoProgress(kopf.ProgressStorage):
    """Looks are never half done: nothing is to be remembered between two of them."""

    def fetch(self, **_: Any) -> kopf.ProgressRecord | None:
        return None

    def store(self, **_: Any) -> None:
        pass

    def purge(self, **_: Any) -> None:
        pass

    def touch(self, **_: Any) -> None:
        pass

    def clear(self, *, essence: kopf.BodyEssence) -> kopf.BodyEssence:
        return essence
