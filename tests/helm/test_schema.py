"""values.schema.json: what it refuses, and that the message names the field."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from tests.helm.charts import CHART, NEEDS_HELM, Document, at, helm, nested, render, template
from tests.helm.scripts import chart

pytestmark = NEEDS_HELM

BAD: tuple[tuple[str, Any, str], ...] = (
    ("nameOverride", 1, "nameOverride"),
    ("fullnameOverride", "x" * 41, "fullnameOverride"),
    ("image.repository", "", "image/repository"),
    ("image.tag", "a b", "image/tag"),
    ("image.digest", "sha256:12", "image/digest"),
    ("image.pullPolicy", "Sometimes", "image/pullPolicy"),
    ("image.pullSecrets", [{"name": "x"}], "image/pullSecrets/0"),
    ("image.pullsecrets", [], "pullsecrets"),
    ("operator.replicas", -1, "operator/replicas"),
    ("operator.replicas", "2", "operator/replicas"),
    ("operator.watchNamespaces", "all", "operator/watchNamespaces"),
    ("operator.watchNamespaces", ["Bad_Name"], "operator/watchNamespaces/0"),
    ("operator.logLevel", "loud", "operator/logLevel"),
    ("operator.extraEnv", [{"value": "x"}], "operator/extraEnv/0"),
    ("operator.replica", 2, "replica"),
    ("serviceAccount.annotations", {"a": 1}, "serviceAccount/annotations"),
    ("crds.upgrade", "yes", "crds/upgrade"),
    ("router.name", "Main", "router/name"),
    ("router.spec.replicas", "three", "router/spec/replicas"),
    ("router.spec.replicas", 1001, "router/spec/replicas"),
    ("router.spec.host", ["a"], "host"),
    ("router.spec.hosts", ["not a host"], "router/spec/hosts/0"),
    ("router.spec.ports.smp", 70000, "router/spec/ports/smp"),
    ("router.spec.redis.durability", "maybe", "router/spec/redis/durability"),
    ("router.spec.redis.external.url", "http://x", "router/spec/redis/external/url"),
    ("router.spec.exposure.type", "Ingress", "router/spec/exposure/type"),
    ("router.spec.telemetry.traces", {}, "router/spec/telemetry/traces"),
    ("notifier.spec.push.apns", {"keyId": "x"}, "notifier/spec/push/apns"),
    ("notifier.spec.push.fcm", {"secretName": "x"}, "fcm"),
    ("notifier.spec.push.webPush.subject", "me", "notifier/spec/push/webPush/subject"),
    ("notifier.spec.subscriber.hostMode", "Tor", "notifier/spec/subscriber/hostMode"),
    ("notifier.spec.redis.prefix", "Has Space", "notifier/spec/redis/prefix"),
    ("services", [{"spec": {"role": "Messaging"}}], "services/0"),
    ("services", [{"name": "x", "spec": {}}], "services/0/spec"),
    ("services", [{"name": "x", "spec": {"role": "Boss"}}], "services/0/spec/role"),
    ("observability.otlp.endpoint", "collector:4318", "observability/otlp/endpoint"),
    ("observability.otlp.sampleRatio", 2, "observability/otlp/sampleRatio"),
    ("observability.serviceMonitor.interval", "soon", "observability/serviceMonitor/interval"),
    ("observability.alerts.disabled", "all", "observability/alerts/disabled"),
    ("pipeline.mode", "batch", "pipeline/mode"),
    ("pipeline.schedule", "hourly", "pipeline/schedule"),
    ("pipeline.every", "often", "pipeline/every"),
    ("pipeline.storage.size", "10", "pipeline/storage/size"),
    ("pipeline.storage.accessMode", "Shared", "pipeline/storage/accessMode"),
    ("pipeline.storage.s3.endpoint", "minio:9000", "pipeline/storage/s3/endpoint"),
    ("pipeline.storage.s3.bucket", "My_Bucket", "pipeline/storage/s3/bucket"),
    ("pipeline.retention.gold", "1y", "pipeline/retention/gold"),
    ("pipeline.memory", "1Gi", "pipeline/memory"),
    ("pipeline.conf", {"parallel": "2"}, "'parallel'"),
    ("pipeline.executors.instances", 0, "pipeline/executors/instances"),
    ("test.edges", -1, "test/edges"),
    ("uninstall.timeoutSeconds", 1, "uninstall/timeoutSeconds"),
    ("typo", 1, "typo"),
)


@pytest.mark.parametrize(("path", "value", "named"), BAD, ids=lambda part: str(part)[:40])
def test_bad_value_is_refused_by_name(path: str, value: Any, named: str) -> None:
    done = template(nested(path, value), check=False)
    assert done.returncode != 0
    assert named in done.stderr, done.stderr


@pytest.mark.parametrize("profile", ["values.yaml", "values-production.yaml", "values-dev.yaml"])
def test_lint(profile: str) -> None:
    assert "0 chart(s) failed" in helm("lint", "--strict", CHART, "--values", CHART / profile).stdout


def example(schema: Document) -> Any:
    """Some value the schema allows, and not the default."""
    if "enum" in schema:
        return schema["enum"][-1]
    match schema.get("type"):
        case "boolean":
            return not schema.get("default", False)
        case "integer":
            return max(schema.get("minimum", 0), min(schema.get("maximum", 7), 7))
        case "number":
            return 0.25
        case "array":
            return [example(schema["items"])] if schema.get("items") else [{"key": "spot", "operator": "Exists"}]
        case "object":
            inner = schema.get("additionalProperties")
            return {"cpu": example(inner)} if isinstance(inner, dict) else {}
    if "anyOf" in schema:
        return "2"
    texts = (
        "7",
        "CC",
        "7Gi",
        "7h",
        "smp.example.org",
        "https://example.org/x",
        "redis://redis:6379/0",
        "10.0.0.0/8",
        "A" * 43,
    )
    import re

    return next(text for text in (*texts, "ABCDEFGHIJ", "name") if re.search(schema.get("pattern", ""), text))


def spec_leaves() -> list[tuple[str, str, Document]]:
    schema = chart.values_schema()
    kinds = {"router.spec.": "SMPRouter/weir", "notifier.spec.": "NTFRouter/weir-ntf"}
    return [
        (path, document, part)
        for path, part, _ in chart.leaves(schema, {})
        for prefix, document in kinds.items()
        if path.startswith(prefix)
    ]


def test_every_field_of_a_spec_reaches_the_object_unchanged() -> None:
    """All at once: the chart must not know them, and the schema must let each through."""
    values: Document = {"router": {"spec": {}}, "notifier": {"enabled": True, "spec": {}}}
    leaves = spec_leaves()
    for path, _, part in leaves:
        place: Any = values
        *parents, last = path.split(".")
        for name in parents:
            place = place.setdefault(name, {})
        place[last] = example(part)
    documents = render(values)
    for path, document, _ in leaves:
        assert at(documents[document], path.split(".", 1)[1]) == at(values, path), path
    assert len(leaves) > 80


def test_values_yaml_shows_every_value() -> None:
    """A person who reads values.yaml has seen all there is, down to the specs."""
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    schema = chart.values_schema()

    def missing(part: Document, given: Any, path: str) -> list[str]:
        names = [name for name in part.get("properties", {}) if name not in given and name != "global"]
        found = [f"{path}{name}" for name in names]
        for name, inner in part.get("properties", {}).items():
            if name != "spec" and isinstance(given.get(name), dict) and "properties" in inner:
                found += missing(inner, given[name], f"{path}{name}.")
        return found

    assert missing(schema, values, "") == []
