"""Every row of the chart's option table, and every field of the specs, sent to the API server as a dry run."""

from __future__ import annotations

import json
import re
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from kubernetes.client.exceptions import ApiException

from tests.cluster.harness import Cluster, Kube
from tests.helm.charts import CHART, at, nested, render
from tests.helm.option_rows import ROWS, given
from tests.helm.test_schema import example, spec_leaves
from weir_operator.kinds import names
from weir_operator.kinds.registry import read
from weir_operator.kinds.routers.model import embedded_settings
from weir_operator.kinds.routers.teardown import kept_secrets_to_delete

pytestmark = pytest.mark.timeout(300)

# Kinds whose CRDs belong to others and are not on this cluster.
ELSEWHERE = {"ServiceMonitor", "PrometheusRule"}


def dry_run(kube: Kube, namespace: str, document: dict[str, Any]) -> None:
    """Fail when the API server refuses the object: for an unknown field, a bad value or a broken rule."""
    resource = kube.dynamic.resources.get(api_version=document["apiVersion"], kind=document["kind"])
    where = {"namespace": namespace} if resource.namespaced else {}
    body = json.loads(json.dumps(document).replace('"namespace": "chat"', f'"namespace": "{namespace}"'))
    if resource.namespaced:
        body["metadata"]["namespace"] = namespace
    try:
        resource.create(body=body, query_params=[("dryRun", "All"), ("fieldValidation", "Strict")], **where)
    except ApiException as error:
        pytest.fail(f"{document['kind']}/{document['metadata']['name']}: {error.body}")


def as_pod(document: dict[str, Any]) -> dict[str, Any] | None:
    """The pod of a workload by itself: the Pod Security level is enforced on pods alone."""
    spec = at(document, "spec.template.spec")
    if spec is None or document["kind"] not in {"Deployment", "Job"}:
        return None
    # The admission of priorities wants their class to exist, and that of accounts theirs.
    spec = {key: value for key, value in spec.items() if key not in {"priorityClassName", "serviceAccountName"}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": document["metadata"]["name"]}, "spec": spec}


def test_every_option(kube: Kube, namespace: str) -> None:
    seen: set[str] = set()
    with ThreadPoolExecutor(4) as pool:
        rendered = list(pool.map(lambda row: render(given(row), row.apis), ROWS))
    for documents in rendered:
        for document in documents.values():
            text = json.dumps(document, sort_keys=True)
            if text in seen or document["kind"] in ELSEWHERE:
                continue
            seen.add(text)
            dry_run(kube, namespace, document)
            if pod := as_pod(document):
                dry_run(kube, namespace, pod)
    assert len(seen) > 100


@pytest.mark.parametrize("profile", ["values-production.yaml", "values-dev.yaml"])
def test_profile(kube: Kube, namespace: str, profile: str) -> None:
    for document in render({}, (), "--values", str(CHART / profile)).values():
        dry_run(kube, namespace, document)


DELETED = {"identity": {"whenDeleted": "Delete"}, "redis": {"embedded": {"storage": {"whenDeleted": "Delete"}}}}
EXTERNAL = {"redis": {"external": {"url": "redis://redis:6379/0"}}}
ROUTER_SPECS: list[dict[str, Any]] = [{}, DELETED, {**DELETED, **EXTERNAL}, {"identity": {"secretName": "mine"}}]


def kept(kind: str, name: str, spec: dict[str, Any]) -> set[str]:
    """The objects that stay when a router is deleted, by the operator's own rules."""
    router = read({"metadata": {"namespace": "chat", "name": name, "uid": "uid"}, "spec": spec}, kind)
    embedded = embedded_settings(router)
    given = spec.get("identity", {}).get("secretName")
    made = {given or names.identity(name), names.store(name)} | ({names.vapid(name)} if kind == "NTFRouter" else set())
    secrets = made - set(kept_secrets_to_delete(router))
    volume = embedded is not None and embedded["storage"]["whenDeleted"] == "Retain"
    return {f"Secret {one}" for one in secrets} | (
        {f"PersistentVolumeClaim data-{names.redis(name)}-0"} if volume else set()
    )


@pytest.mark.parametrize("spec", ROUTER_SPECS, ids=["defaults", "deleted", "external", "given identity"])
def test_notes_name_exactly_what_uninstall_keeps(cluster: Cluster, namespace: str, spec: dict[str, Any]) -> None:
    pair = {"router": "weir", "role": "Messaging"}
    services = [
        {"name": "app", "spec": {**pair, "keyPair": {}}},
        {"name": "named", "spec": {**pair, "keyPair": {"secretName": "its-own"}}},
        {"name": "brief", "spec": {**pair, "keyPair": {"whenDeleted": "Delete"}}},
        {"name": "listed", "spec": {**pair, "fingerprints": ["A" * 43]}},
    ]
    values = {"router": {"spec": spec}, "notifier": {"enabled": True, "spec": spec}, "services": services}
    line = ("helm", "install", "weir", str(CHART), "--namespace", namespace, "--dry-run=server", "--values", "-")
    notes = cluster.run(*line, stdin=json.dumps(values)).partition("helm uninstall keeps")[2]
    told = set(re.findall(r"^  ((?:Secret|PersistentVolumeClaim) \S+)", notes, re.MULTILINE))
    expected = kept("SMPRouter", "weir", spec) | kept("NTFRouter", "weir-ntf", spec)
    assert told == expected | {"Secret app-service", "Secret its-own"}


URL = {"url": "redis://redis:6379/0"}
PUSH = {"secretName": "secret", "keyId": "ABCDEFGHIJ", "teamId": "ABCDEFGHIJ", "topic": "org.example.app"}
# Fields that other fields need beside them, by the CRDs' rules. A field of the same name in here wins over the example.
COMPANIONS: dict[str, dict[str, Any]] = {
    "autoscaling": {"autoscaling": {"maxReplicas": 9, "minReplicas": 1}},
    "exposure.nodePort": {"exposure": {"type": "NodePort", "nodePort": 30007}},
    "exposure.hostPort": {"exposure": {"type": "HostPort"}},
    "exposure.loadBalancerClass": {"exposure": {"type": "LoadBalancer"}},
    "exposure.loadBalancerSourceRanges": {"exposure": {"type": "LoadBalancer"}},
    "exposure.externalTrafficPolicy": {"exposure": {"type": "LoadBalancer"}},
    "basicAuth": {"basicAuth": {"name": "secret"}},
    "certificate.lifetimeDays": {"certificate": {"renewBeforeDays": 1}},
    "redis.durability": {"redis": {"external": URL}},
    "redis.external.urlSecret": {"redis": {"external": {"urlSecret": {"name": "secret"}}}},
    "redis.external.passwordSecret": {"redis": {"external": {"passwordSecret": {"name": "secret"}, **URL}}},
    "telemetry.traces": {"telemetry": {"traces": {"endpoint": "http://collector:4318"}}},
    "push.apns": {"push": {"apns": PUSH}},
    "push.apns.ca": {"push": {"apns": {**PUSH, "ca": {"name": "secret"}}}},
    "push.webPush.ca": {"push": {"webPush": {"ca": {"name": "secret"}}}},
    "subscriber.socksMode": {"subscriber": {"socksProxy": "tor:9050"}},
    "information": {"information": {"sourceCode": "https://example.org/source"}},
}


def merge(one: Any, other: Any) -> Any:
    if isinstance(one, dict) and isinstance(other, dict):
        return {**one, **{key: merge(one.get(key), value) for key, value in other.items()}}
    return other


def test_every_field_of_the_specs(kube: Kube, namespace: str) -> None:
    """The API server accepts what values.schema.json accepts."""
    for path, name, part in spec_leaves():
        field = path.split(".", 2)[2]
        spec = nested(field, example(part))
        for prefix, companions in COMPANIONS.items():
            if field == prefix or field.startswith(prefix + "."):
                spec = merge(spec, companions)
        kind = name.split("/")[0]
        document = {"apiVersion": "weir.dev/v1alpha1", "kind": kind, "metadata": {"name": "demo"}, "spec": spec}
        dry_run(kube, namespace, document)
