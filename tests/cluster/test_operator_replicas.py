"""Two operator replicas: one works, and the other takes over when it stops or dies."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from tests.cluster.conftest import PAUSE, idle
from tests.cluster.harness import Cluster, Kube, wait_for
from tests.cluster.operator_process import OperatorProcess
from tests.cluster.test_operator_children import made


def leaders(*processes: OperatorProcess) -> list[OperatorProcess]:
    return [p for p in processes if p.process is not None and p.metric("weir_operator_leader") == 1.0]


def test_one_works_and_the_other_takes_over(cluster: Cluster, kube: Kube, namespace: str, tmp_path: Path) -> None:
    replicas = [
        OperatorProcess(cluster, tmp_path, image=PAUSE, namespace=namespace, port=8091 + number) for number in range(2)
    ]
    try:
        for replica in replicas:
            replica.start()
        wait_for("a leader", lambda: len(leaders(*replicas)) == 1, 20)
        (leader,) = leaders(*replicas)
        other = next(p for p in replicas if p is not leader)
        kube.create(idle("first"), namespace)
        made(kube, namespace, "first")
        assert leaders(*replicas) == [leader]
        assert other.metric('weir_operator_reconciles_total{kind="SMPRouter",result="ok"}') is None

        # Killed: the Lease runs out.
        leader.kill()
        wait_for("the other one", lambda: leaders(*replicas) == [other], 20)
        kube.delete("Deployment", "first", namespace)
        wait_for("repair", lambda: kube.find("Deployment", "first", namespace), 10)

        # Stopped: the Lease is handed on at once.
        leader.start()
        wait_for("the first to stand by", lambda: leader.metric("weir_operator_leader") == 0.0, 20)
        assert other.stop() == 0
        wait_for("the first again", lambda: leaders(*replicas) == [leader], 3)
    finally:
        for replica in replicas:
            replica.kill()


def test_a_suspended_leader_ends_when_it_wakes(cluster: Cluster, kube: Kube, namespace: str, tmp_path: Path) -> None:
    """A node that hangs for a while: by then another replica works, and the first may write nothing any more."""
    first, second = (
        OperatorProcess(cluster, tmp_path, image=PAUSE, namespace=namespace, port=8091 + number) for number in range(2)
    )
    try:
        first.start().wait_working()
        kube.create(idle("hung"), namespace)
        made(kube, namespace, "hung")
        second.start()
        os.kill(first.pid, signal.SIGSTOP)
        second.wait_working()
        kube.delete("Deployment", "hung", namespace)
        wait_for("repair", lambda: kube.find("Deployment", "hung", namespace), 10)
        holder = kube.get("Lease", "weir-operator", namespace)["spec"]["holderIdentity"]
        before = kube.get("Deployment", "hung", namespace)["metadata"]["uid"]

        assert first.process is not None
        os.kill(first.pid, signal.SIGCONT)
        assert first.process.wait(20) == 1, first.log.read_text()
        assert "the lease is lost" in first.log.read_text()
        first.process = None
        assert leaders(second) == [second]
        assert kube.get("Lease", "weir-operator", namespace)["spec"]["holderIdentity"] == holder
        assert kube.get("Deployment", "hung", namespace)["metadata"]["uid"] == before
    finally:
        first.kill()
        second.kill()
    kube.delete("Lease", "weir-operator", namespace)


def test_a_lost_lease_ends_the_work(cluster: Cluster, kube: Kube, namespace: str, tmp_path: Path) -> None:
    with OperatorProcess(cluster, tmp_path, image=PAUSE, namespace=namespace) as process:
        process.wait_working()
        spec = {"holderIdentity": "somebody else", "leaseDurationSeconds": 60}
        kube.merge("Lease", "weir-operator", namespace, {"spec": spec})
        assert process.process is not None
        assert process.process.wait(20) == 1, process.log.read_text()
        process.process = None
    assert kube.get("Lease", "weir-operator", namespace)["spec"]["holderIdentity"] == "somebody else"
    kube.delete("Lease", "weir-operator", namespace)
