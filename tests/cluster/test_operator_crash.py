"""The operator is killed at every write it makes, before and after it took effect, and started again: the end is the
same, and nothing that must be made once is made twice."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.apiproxy import ApiProxy
from tests.cluster.conftest import PAUSE, idle, router
from tests.cluster.harness import Cluster, Kube, wait_for
from tests.cluster.operator_process import OperatorProcess
from tests.cluster.test_operator_children import children, kept

VOLATILE = ("resourceVersion", "uid", "creationTimestamp", "managedFields", "generation", "ownerReferences")


@pytest.fixture
def proxy(cluster: Cluster) -> Iterator[ApiProxy]:
    with ApiProxy(cluster.listener(), cluster.kubeconfig) as running:
        yield running


@pytest.fixture
def process(cluster: Cluster, namespace: str, tmp_path: Path, proxy: ApiProxy) -> Iterator[OperatorProcess]:
    """An operator whose every write goes through the proxy."""
    config = proxy.kubeconfig(tmp_path / "kubeconfig")
    # Long: a busy machine must not end its work.
    options = ("--lease-seconds=15",)
    with OperatorProcess(
        cluster, tmp_path, image=PAUSE, namespace=namespace, kubeconfig=config, options=options
    ) as running:
        yield running.wait_working()


@pytest.fixture
def killer(process: OperatorProcess, proxy: ApiProxy, kube: Kube, namespace: str) -> Killer:
    return Killer(process, proxy, kube, namespace)


def shape(kube: Kube, namespace: str, name: str) -> dict[str, Any]:
    """All children of a router without what differs every time: versions, addresses, keys and the router's name."""
    found = {}
    for kind, of in children(name):
        body = kube.find(kind, of, namespace)
        if body is None:
            continue
        meta = {k: v for k, v in body["metadata"].items() if k not in VOLATILE}
        rest = {k: v for k, v in body.items() if k in ("spec", "type")}
        rest.get("spec", {}).pop("clusterIP", None)
        rest.get("spec", {}).pop("clusterIPs", None)
        keys = sorted(body.get("data") or ())
        text = str({"meta": meta, **rest, "keys": keys}).replace(name, "NAME")
        # The configuration names the router's hosts, so its hash differs with the name.
        found[kind, of.replace(name, "NAME")] = re.sub(r"'weir.dev/config-hash': '\w+'", "'weir.dev/config-hash'", text)
    return found


def settled(kube: Kube, namespace: str, name: str) -> bool:
    body = kube.get("SMPRouter", name, namespace)
    conditions = {c["type"]: c["reason"] for c in (body.get("status") or {}).get("conditions") or ()}
    return (
        conditions.get("CertificateValid") == "Valid"
        and conditions.get("Progressing") == "RollingOut"
        and body["status"]["observedGeneration"] == body["metadata"]["generation"]
        and all(kube.find(*at, namespace) for at in children(name))
    )


def killed_or_settled(process: OperatorProcess, kube: Kube, namespace: str, name: str) -> bool:
    return process.process is None or settled(kube, namespace, name)


def killed_or_gone(process: OperatorProcess, kube: Kube, namespace: str, name: str, kind: str = "SMPRouter") -> bool:
    return process.process is None or kube.find(kind, name, namespace) is None


class Killer:
    """Kill the operator at one write, and start it again."""

    def __init__(self, process: OperatorProcess, proxy: ApiProxy, kube: Kube, namespace: str) -> None:
        self._process = process
        self._proxy = proxy
        self._kube, self._namespace = kube, namespace
        self.struck = ""

    def arm(self, number: int, when: str, resource: str = "") -> None:
        """At the write of this number, or at the first from there on to a resource."""
        self._proxy.writes = 0
        self.struck = ""

        def strike(at: int, method: str, path: str) -> bool:
            wanted = at >= number and f"/{resource}" in path if resource else at == number
            if not wanted or self.struck:
                return False
            self.struck = f"{method} {path}"
            self._process.kill()
            return True

        def ignore(*_: object) -> bool:
            return False

        self._proxy.before = strike if when == "before" else ignore
        self._proxy.after = strike if when == "after" else ignore

    def revive(self) -> None:
        """Delete the Lease, so that the next replica need not wait until it expires."""
        self._kube.delete("Lease", "weir-operator", self._namespace)
        self._process.start()


@pytest.mark.timeout(500)
def test_killed_at_every_write_it_ends_in_the_same_state(
    kube: Kube, namespace: str, process: OperatorProcess, killer: Killer
) -> None:
    kube.create(idle("whole"), namespace)
    wait_for("an undisturbed router", lambda: settled(kube, namespace, "whole"), 30)
    expected = shape(kube, namespace, "whole")
    assert len(expected) == len(children("whole"))
    struck: list[str] = []

    def cut(name: str, number: int, when: str, resource: str = "") -> bool:
        """Whether a router made now takes that write; killed there, it ends as the undisturbed one did."""
        killer.arm(number, when, resource)
        kube.create(idle(name), namespace)
        wait_for("the kill", partial(killed_or_settled, process, kube, namespace, name), 30)
        if process.process is not None:
            return False
        struck.append(f"{when} {killer.struck}".replace(name, "NAME"))
        begun = kube.find("Secret", f"{name}-identity", namespace)
        killer.revive()
        wait_for(f"{name} to be whole", partial(settled, kube, namespace, name), 60)
        assert shape(kube, namespace, name) == expected, struck[-1]
        if begun is not None:
            after = kube.get("Secret", f"{name}-identity", namespace)
            assert after["metadata"]["uid"] == begun["metadata"]["uid"], struck[-1]
            assert after["data"] == begun["data"]
        return True

    for number in range(1, 20):
        if not cut(f"cut{number:02}", number, "before" if number % 2 else "after"):
            break  # a router takes fewer writes than that
    assert len(struck) >= 15, struck
    # Events go out beside the children and take numbers too: the kinds that were not among these come now.
    for resource in ("smprouters", "secrets", "serviceaccounts", "deployments", "statefulsets", "services"):
        if not any(f"/{resource}" in line for line in struck):
            assert cut(f"cut-{resource}", 1, "after", resource), resource


@pytest.mark.timeout(300)
def test_killed_while_deleting_it_ends_with_nothing_left(
    kube: Kube, namespace: str, process: OperatorProcess, killer: Killer
) -> None:
    for number, when in ((1, "before"), (1, "after"), (2, "before"), (3, "after")):
        name = f"end{number}{when}"
        kube.create(idle(name), namespace)
        wait_for("the router", partial(settled, kube, namespace, name), 30)
        killer.arm(number, when)
        kube.delete("SMPRouter", name, namespace)
        wait_for("the kill", partial(killed_or_gone, process, kube, namespace, name), 30)
        if process.process is None:
            killer.revive()
        kube.gone("SMPRouter", name, namespace, 60)
        for at in children(name):
            if at not in kept(name):
                kube.gone(*at, namespace, 30)


def test_killed_while_renewing_the_edges_get_one_certificate_that_fits(
    kube: Kube, namespace: str, process: OperatorProcess, killer: Killer
) -> None:
    kube.create(idle("renew"), namespace)
    wait_for("the router", lambda: settled(kube, namespace, "renew"), 30)
    for round_, when in enumerate(("before", "after")):
        old = kube.get("Secret", "renew-edge", namespace)["data"]["server.crt"]
        killer.arm(1, when)
        patch = {"metadata": {"annotations": {"weir.dev/renew-certificate": f"r{round_}"}}}
        kube.merge("SMPRouter", "renew", namespace, patch)
        wait_for("the kill", lambda: process.process is None, 30)
        killer.revive()

        def renewed(old: str = old, mark: str = f"r{round_}") -> bool:
            now = kube.get("Secret", "renew-edge", namespace)
            return now["data"]["server.crt"] != old and mark in str(now["metadata"]["annotations"])

        wait_for("one renewal", renewed, 60)
        wait_for("status", lambda: settled(kube, namespace, "renew"), 30)


@pytest.mark.timeout(300)
def test_killed_while_looking_after_a_service_its_key_pair_is_made_once(
    kube: Kube, namespace: str, process: OperatorProcess, killer: Killer
) -> None:
    spec = {"router": "nowhere", "role": "Messaging", "keyPair": {"whenDeleted": "Delete"}, "whenDeleted": "Forget"}

    struck = set()
    for resource, when in (("smpservices", "before"), ("secrets", "before"), ("secrets", "after")):
        name = f"app-{resource}-{when}"
        killer.arm(1, when, resource)
        kube.create(router(name, "SMPService", **spec), namespace)
        wait_for("the kill", lambda: process.process is None, 30)
        struck.add(killer.struck.replace(name, "NAME"))
        begun = kube.find("Secret", f"{name}-service", namespace)
        assert (begun is not None) == ((resource, when) == ("secrets", "after"))
        killer.revive()
        kube.await_condition("SMPService", name, namespace, "Ready", "False", "RouterMissing", 60)
        pair = kube.get("Secret", f"{name}-service", namespace)
        if begun is not None:
            assert (pair["metadata"]["uid"], pair["data"]) == (begun["metadata"]["uid"], begun["data"])
        # When the service is deleted, the finalizer goes, whether or not the operator lived to see it.
        killer.arm(1, when, "smpservices")
        kube.delete("SMPService", name, namespace)
        wait_for("the end", partial(killed_or_gone, process, kube, namespace, name, "SMPService"), 30)
        if process.process is None:
            killer.revive()
        kube.gone("SMPService", name, namespace, 60)
        kube.gone("Secret", f"{name}-service", namespace, 30)
    assert len(struck) == 2, struck
