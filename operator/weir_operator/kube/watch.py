"""The kopf handlers: startup, cleanup, login, and one on.event per kind. Each event asks for one reconciliation. Change
handlers (on.create, on.update, on.delete) are not used, because kopf keeps their progress and a copy of each object in
annotations, which costs a write per step; a reconciliation is never half done and has no progress to keep.

More of kopf that does not fit, and why:
- Timers and daemons run a task per object and put a finalizer of kopf's on it. The work queue has a few workers for all
  objects, and reconciles each again after the time that its last reconciliation asked for.
- Indexes (kopf.index) change by events only. See weir_operator/kube/cache.py.
- Probes (on.probe) are served while kopf runs, and kopf runs only where the Lease is held. A replica that waits for the
  Lease has to answer its liveness probe as well, so the operator serves /healthz itself.
- Posting (kopf.event): see weir_operator/kube/events.py.
- Peering elects a leader through annotations of a custom resource. The Lease does it with Kubernetes' own kind.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import kopf

from weir_operator.kube.cache import Cache
from weir_operator.kube.login import Login
from weir_operator.kube.objects import Key, Kind

# Children change in bursts while an object's children are made: one reconciliation for all of them.
_CHILD_DELAY = 0.3


@dataclass(frozen=True, slots=True)
class Watched:
    """The operator's own kinds, the kinds of children, and the label selector of the children."""

    own: tuple[Kind, ...]
    children: tuple[Kind, ...]
    selector: str


def registry(
    watched: Watched,
    login: Login,
    cache: Cache,
    wake: Callable[[Key, float], None],
    *,
    on_startup: Callable[[], Awaitable[None]],
    on_cleanup: Callable[[], Awaitable[None]],
) -> kopf.OperatorRegistry:
    """All handlers. `wake` is called with the object to reconcile, and with a delay in seconds."""
    handlers = kopf.OperatorRegistry()

    @kopf.on.startup(registry=handlers, id="startup")
    async def startup(settings: kopf.OperatorSettings, **_: Any) -> None:
        configure(settings, watched)
        await on_startup()

    @kopf.on.cleanup(registry=handlers, id="cleanup")
    async def cleanup(**_: Any) -> None:
        await on_cleanup()

    @kopf.on.login(registry=handlers, id="login")
    async def log_in(**_: Any) -> kopf.AiohttpSession:
        return await login.open_session()

    def watch(
        kinds: Iterable[Kind], record: Callable[[str, Mapping[str, Any], bool], Key | None], delay: float
    ) -> None:
        for kind in kinds:

            @kopf.on.event(kind.group, kind.version, kind.plural, registry=handlers, id=kind.plural, param=kind.name)
            async def changed(type: str, body: Mapping[str, Any], param: Any = None, **_: Any) -> None:
                key = record(param, body, type == "DELETED")
                if key is not None:
                    wake(key, delay)

    watch(watched.own, cache.object_event, 0.0)
    watch(watched.children, cache.child_event, _CHILD_DELAY)
    return handlers


def configure(settings: kopf.OperatorSettings, watched: Watched) -> None:
    settings.scanning.disabled = True  # would need rights on all CRDs and namespaces
    settings.posting.enabled = False
    settings.peering.standalone = True
    settings.watching.server_timeout = 290
    settings.queueing.idle_timeout = 1.0
    settings.persistence.diffbase_storage = _NoDiff()
    settings.persistence.progress_storage = _NoProgress()
    for kind in watched.children:
        settings.watching.label_selectors[kind.group, kind.version, kind.plural] = watched.selector


class _NoDiff(kopf.DiffBaseStorage):
    """Keeps no copy of an object: changes are found by comparing children with the desired state."""

    def build(self, **_: Any) -> kopf.BodyEssence:
        return kopf.BodyEssence()

    def fetch(self, **_: Any) -> kopf.BodyEssence | None:
        return None

    def store(self, **_: Any) -> None:
        pass


class _NoProgress(kopf.ProgressStorage):
    """Keeps no progress: a reconciliation is never half done."""

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
