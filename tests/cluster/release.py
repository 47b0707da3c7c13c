"""Helm releases of the chart on the test cluster, and clients outside its pods."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

from tests.cluster.harness import REPO, Cluster, Kube, wait_for

CHART = REPO / "helm/weir"
PREVIOUS = REPO / "tests/helm/previous"
NODE = "10.98.0.1"
Values = dict[str, Any]


class Release:
    """One release, its operator watching its own namespace only."""

    def __init__(self, cluster: Cluster, kube: Kube, namespace: str, name: str = "weir") -> None:
        self.cluster = cluster
        self.kube = kube
        self.namespace = namespace
        self.name = name

    def _values(self, values: Values | None) -> str:
        given: Values = {"image": {"tag": "dev"}, "operator": {"watchNamespaces": [self.namespace]}}
        for part, inner in (values or {}).items():
            given[part] = {**given.get(part, {}), **inner} if isinstance(inner, dict) else inner
        return yaml.safe_dump(given)

    def helm(self, *arguments: str, stdin: str | None = None, seconds: float = 240, check: bool = True) -> str:
        return self.cluster.run(
            "helm", "--namespace", self.namespace, *arguments, stdin=stdin, seconds=seconds, check=check
        )

    def install(self, values: Values | None = None, chart: Path = CHART, *arguments: str) -> str:
        options = ("--values", "-", "--wait", "--timeout", "3m", *arguments)
        return self.helm("install", self.name, str(chart), *options, stdin=self._values(values))

    def upgrade(self, values: Values | None = None, chart: Path = CHART) -> str:
        options = ("--values", "-", "--wait", "--timeout", "3m")
        return self.helm("upgrade", self.name, str(chart), *options, stdin=self._values(values))

    def test(self) -> str:
        """Run `helm test`. Return what its Job printed."""
        self.helm("test", self.name)
        return self.kubectl("logs", f"job/{self.name}-test")

    def uninstall(self) -> str:
        return self.helm("uninstall", self.name, "--wait", "--timeout", "3m")

    def kubectl(self, *arguments: str, check: bool = True, stdin: str | None = None) -> str:
        return self.cluster.run("kubectl", "--namespace", self.namespace, *arguments, check=check, stdin=stdin)

    def ready(self, router: str = "weir", seconds: float = 180) -> dict[str, Any]:
        """Ready, and with all of its edges."""
        self.kube.await_condition("SMPRouter", router, self.namespace, "Ready", seconds=seconds)

        def complete() -> dict[str, Any] | None:
            body = self.kube.get("SMPRouter", router, self.namespace)
            edges = body["status"]["edges"]
            return body if edges["ready"] == edges["desired"] else None

        return wait_for("all edges", complete, seconds)

    def address(self, router: str = "weir") -> str:
        found: str = self.ready(router)["status"]["address"]
        return found

    def pods(self, component: str) -> list[dict[str, Any]]:
        labels = f"app.kubernetes.io/component={component}"
        found = self.kube.list("Pod", self.namespace, labels)
        return [pod for pod in found if not pod["metadata"].get("deletionTimestamp")]

    def edges(self, number: int = 2) -> list[str]:
        """host:port of every ready edge, once there are `number` of them."""

        def addresses() -> list[str] | None:
            ready = [
                f"{pod['status']['podIP']}:5223"
                for pod in self.pods("edge")
                if any(c["type"] == "Ready" and c["status"] == "True" for c in pod["status"].get("conditions") or ())
            ]
            return ready if len(ready) == number else None

        return wait_for(f"{number} edges that are ready", addresses)

    def weir(self, *arguments: str) -> str:
        """Run the `weir` command in the cluster's network, outside its pods."""
        return self.cluster.run(sys.executable, "-m", "weir.cli.main", *arguments, inside=True)

    def mail(self, verb: str, state: Path, *edges: str) -> str:
        """tests/cluster/mail.py: a message put into a queue now, and fetched later."""
        return self.cluster.run(sys.executable, "-m", "tests.cluster.mail", verb, str(state), *edges, inside=True)

    def page(self, service: str, port: int, path: str) -> str:
        """Ask a Service through the API server's proxy."""
        where = f"/api/v1/namespaces/{self.namespace}/services/{service}:{port}/proxy{path}"
        return self.cluster.run("kubectl", "get", "--raw", where)

    def left(self) -> set[str]:
        """The objects in the namespace, without those that Kubernetes puts into every namespace."""
        kinds = self.cluster.run("kubectl", "api-resources", "--namespaced", "--verbs=list", "-o", "name").split()
        ignored = {
            "events",
            "events.events.k8s.io",
            "pods.metrics.k8s.io",
            "endpoints",
            "endpointslices.discovery.k8s.io",
        }
        listed = ",".join(kind for kind in kinds if kind not in ignored)
        found = json.loads(self.kubectl("get", listed, "-o", "json"))["items"]
        names = {f"{item['kind']}/{item['metadata']['name']}" for item in found}
        return names - {"ServiceAccount/default", "ConfigMap/kube-root-ca.crt"}


Installer = Callable[[str], Release]
