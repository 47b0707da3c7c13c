"""A router on the real image, and what tests ask about it and do to it."""

from __future__ import annotations

import base64
from typing import Any

import kubernetes

from tests.cluster.harness import Cluster, Kube, wait_for

NODE = "10.98.0.1"
_COMPONENTS = {"SMPRouter": "edge", "NTFRouter": "ntf"}


class Live:
    def __init__(self, cluster: Cluster, kube: Kube, namespace: str, kind: str, name: str) -> None:
        self.cluster, self.kube, self.namespace = cluster, kube, namespace
        self.kind, self.name = kind, name

    @property
    def status(self) -> dict[str, Any]:
        found: dict[str, Any] = self.kube.get(self.kind, self.name, self.namespace)["status"]
        return found

    @property
    def address(self) -> str:
        found: str = self.status["address"]
        return found

    def patch(self, spec: dict[str, Any]) -> None:
        self.kube.merge(self.kind, self.name, self.namespace, {"spec": spec})

    def annotate(self, **annotations: str) -> None:
        notes = {f"weir.dev/{key.replace('_', '-')}": value for key, value in annotations.items()}
        self.kube.merge(self.kind, self.name, self.namespace, {"metadata": {"annotations": notes}})

    def condition(self, kind: str, status: str, reason: str | None = None, seconds: float = 60) -> dict[str, Any]:
        return self.kube.await_condition(self.kind, self.name, self.namespace, kind, status, reason, seconds)

    def events(self) -> list[str]:
        return [reason for reason, _ in self.kube.events(self.namespace, self.name)]

    def secret(self, suffix: str, key: str) -> bytes:
        """A value of NAME-suffix."""
        return base64.b64decode(self.kube.get("Secret", f"{self.name}-{suffix}", self.namespace)["data"][key])

    def file(self, pod: str, path: str) -> str:
        """A file as a pod has it."""
        return self.cluster.run("kubectl", "-n", self.namespace, "exec", pod, "--", "cat", path)

    def edges(self) -> list[dict[str, Any]]:
        labels = f"app.kubernetes.io/component={_COMPONENTS[self.kind]},app.kubernetes.io/instance={self.name}"
        found = self.kube.list("Pod", self.namespace, labels)
        return [pod for pod in found if not pod["metadata"].get("deletionTimestamp")]

    def names(self) -> set[str]:
        return {pod["metadata"]["name"] for pod in self.edges()}

    def scale(self, edges: int) -> None:
        """Through the scale subresource, as `kubectl scale` does."""
        what = f"{self.kind.lower()}/{self.name}"
        self.cluster.run("kubectl", "-n", self.namespace, "scale", what, f"--replicas={edges}")
        self.settle(edges)

    def kill_edge(self) -> None:
        victim = self.edges()[0]["metadata"]["name"]
        self.kube.delete("Pod", victim, self.namespace, grace_period_seconds=0)
        wait_for("status to tell", lambda: self.status["edges"]["ready"] < 2 or victim not in self.names(), 20)
        self.settle(2)

    def kill_redis(self) -> None:
        self.kube.delete("Pod", f"{self.name}-redis-0", self.namespace, grace_period_seconds=0)
        told = self.condition("StoreReachable", "False", seconds=20)
        ready = next(one for one in told["status"]["conditions"] if one["type"] == "Ready")
        assert ready["status"] == "False"
        self.settle(2)
        self.condition("DurabilityReady", "True", "Proved")

    def drain_both(self) -> None:
        """Evict two edges, as the drain of their nodes does. The disruption budget lets one go at a time."""
        first, second = (pod["metadata"]["name"] for pod in self.edges())
        assert self._evict(first)
        assert not self._evict(second), "the disruption budget lets one go at a time"
        self.settle(2)
        wait_for("the second one's turn", lambda: self._evict(second), 30)
        self.settle(2)

    def _evict(self, pod: str) -> bool:
        body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod, "namespace": self.namespace}}
        try:
            kubernetes.client.CoreV1Api(self.kube.client).create_namespaced_pod_eviction(pod, self.namespace, body)
        except kubernetes.client.ApiException as error:
            assert error.status == 429, error
            return False
        return True

    def roll(self, spec: dict[str, Any], seconds: float = 90) -> int:
        """Change the spec so that all edges are replaced. Return the fewest that were ready meanwhile."""
        before, fewest = self.names(), len(self.edges())

        def rolled() -> bool:
            nonlocal fewest
            fewest = min(fewest, self.status["edges"]["ready"])
            return not before & self.names()

        self.patch(spec)
        wait_for("new edges", rolled, seconds)
        self.settle(2)
        return fewest

    def settle(self, edges: int, seconds: float = 90) -> None:
        """Wait until the router is ready and has exactly this many edges, all ready."""

        def there() -> bool:
            status = self.status
            numbers = status.get("edges") or {}
            conditions = {one["type"]: one for one in status["conditions"]}
            return (
                numbers == {"desired": edges, "ready": edges, "updated": edges, "summary": f"{edges}/{edges}"}
                and conditions["Ready"]["status"] == "True"
                and conditions["Progressing"]["reason"] == "Settled"
                and len(self.edges()) == edges
            )

        try:
            wait_for(f"{edges} edges", there, seconds)
        except AssertionError as error:
            raise AssertionError(f"{error}\nstatus: {self.status}") from None
