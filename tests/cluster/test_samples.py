"""Every sample is applied unchanged, and the operator creates its children without a problem."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest
import yaml

from tests.cluster.conftest import PATIENT, PAUSE, drop_namespace, new_namespace
from tests.cluster.harness import REPO, Cluster, Kube, wait_for
from tests.cluster.operator_process import OperatorProcess

SAMPLES = sorted((REPO / "k8s/samples").glob("*.yaml"))


@pytest.fixture(scope="module")
def places(kube: Kube) -> Iterator[dict[str, str]]:
    """A namespace for each sample, in which no pod may run: what is tested here are the objects."""
    made = {}
    for sample in SAMPLES:
        made[sample.name] = namespace = new_namespace(kube, "sample")
        quota = {
            "apiVersion": "v1",
            "kind": "ResourceQuota",
            "metadata": {"name": "none"},
            "spec": {"hard": {"pods": "0"}},
        }
        kube.create(quota, namespace)
    yield made
    with ThreadPoolExecutor(5) as pool:
        list(pool.map(partial(drop_namespace, kube), made.values()))


@pytest.fixture(scope="module")
def operator(
    cluster: Cluster, places: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[OperatorProcess]:
    directory = tmp_path_factory.mktemp("operator")
    own = next(iter(places.values()))
    watch = ",".join(places.values())
    with OperatorProcess(cluster, directory, image=PAUSE, namespace=own, watch=watch, options=PATIENT) as process:
        yield process.wait_working()


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda path: path.stem)
def test_sample(cluster: Cluster, kube: Kube, places: dict[str, str], operator: OperatorProcess, sample: Path) -> None:
    namespace = places[sample.name]
    cluster.run("kubectl", "-n", namespace, "apply", "-f", str(sample))
    for body in yaml.safe_load_all(sample.read_text()):
        kind, name = body["kind"], body["metadata"]["name"]
        if kind == "Secret":
            continue

        def told(kind: str = kind, name: str = name) -> dict[str, str] | None:
            status = kube.get(kind, name, namespace).get("status") or {}
            return {one["type"]: one["reason"] for one in status.get("conditions") or ()} or None

        reasons = wait_for(f"status of {kind} {name}", told, 30)
        assert not {"ApplyFailed", "NotOurs", "Forbidden", "IdentityInvalid"} & set(reasons.values()), reasons
        given = body["spec"].get("identity", {}).get("secretName")
        if "apns" in body["spec"].get("push", {}):
            assert reasons["PushReady"] == "SecretMissing"
        if kind == "SMPService":
            assert reasons["Ready"] == "RouterMissing"
        elif given:
            assert reasons["CertificateValid"] == "IdentityMissing"
        else:
            wait_for("the Deployment", lambda name=name: kube.find("Deployment", name, namespace), 20)
            assert reasons["CertificateValid"] in ("Valid", "Pending")
