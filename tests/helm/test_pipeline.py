"""The chart's data pipeline: which pods each mode makes, what they may do, and what is refused with a reason."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from tests.helm.charts import NEEDS_HELM, Document, at, render, template
from tests.helm.option_rows import CONTAINER, POD
from tests.helm.pipeline_rows import BUCKET, EXECUTORS, INGEST, READER, RUN_POD, pipeline

pytestmark = NEEDS_HELM

MODES = {"cron": pipeline(), "stream": pipeline(mode="stream"), "spark": EXECUTORS}
NOTIFIER: Document = {"notifier": {"enabled": True}}


def of_pipeline(documents: dict[str, Document]) -> set[str]:
    return {name for name in documents if "pipeline" in name}


def pods(documents: dict[str, Document]) -> list[Document]:
    name, path = RUN_POD.split(" ")
    found = [at(documents[name], path)]
    if reader := documents.get(READER):
        found.append(at(reader, POD))
    if template := at(documents["ConfigMap/weir-pipeline"], "data.executor\\.yaml"):
        found.append(yaml.safe_load(template)["spec"])
    return found


def test_nothing_of_it_is_there_by_default() -> None:
    assert of_pipeline(render()) == set()


@pytest.mark.parametrize("mode", MODES)
def test_what_a_mode_makes(mode: str) -> None:
    common = {
        *("CronJob/weir-pipeline", "ConfigMap/weir-pipeline", "PersistentVolumeClaim/weir-pipeline"),
        *("ServiceAccount/weir-pipeline", "NetworkPolicy/weir-pipeline", "NetworkPolicy/weir-redis-pipeline"),
    }
    more = {"stream": {READER}, "spark": {"Role/weir-pipeline", "RoleBinding/weir-pipeline"}}
    documents = render(MODES[mode])
    assert of_pipeline(documents) == common | more.get(mode, set())
    run = at(documents["CronJob/weir-pipeline"], "spec.jobTemplate.spec.template.spec")
    names = [one["name"] for one in (*run["initContainers"], *run["containers"])]
    assert names == (["tables", "report"] if mode == "stream" else ["ingest", "tables", "report"])
    assert at(documents["CronJob/weir-pipeline"], "spec.concurrencyPolicy") == "Forbid"


@pytest.mark.parametrize("mode", MODES)
def test_every_pod_is_restricted(mode: str) -> None:
    for pod in pods(render(MODES[mode])):
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        for container in (*pod.get("initContainers", ()), *pod["containers"]):
            assert container["securityContext"] == {
                "allowPrivilegeEscalation": False,
                "readOnlyRootFilesystem": True,
                "capabilities": {"drop": ["ALL"]},
            }
            assert {"name": "tmp", "mountPath": "/tmp"} in container["volumeMounts"]
            if container["name"] != "executor":  # Spark's scheduler sets those of executors
                assert container["resources"]["limits"]["memory"]


@pytest.mark.parametrize("mode", MODES)
def test_only_a_driver_of_executors_talks_to_kubernetes(mode: str) -> None:
    found = [pod["automountServiceAccountToken"] for pod in pods(render(MODES[mode]))]
    assert found == {"cron": [False], "stream": [False, False], "spark": [True, False]}[mode]


EXTERNAL: tuple[tuple[Document, Document, list[Document]], ...] = (
    # spec.redis of the router, what the ConfigMap has of it, the Secrets of the volume
    (
        {},
        {"weir.url": "redis://weir-redis:6379/0"},
        [{"name": "weir-edge", "key": "redis-password", "path": "password"}],
    ),
    ({"external": {"url": "rediss://r:1"}}, {"weir.url": "rediss://r:1"}, []),
    (
        {"external": {"url": "rediss://r:1", "passwordSecret": {"name": "p", "key": "k"}}},
        {"weir.url": "rediss://r:1"},
        [{"name": "p", "key": "k", "path": "password"}],
    ),
    ({"external": {"urlSecret": {"name": "u"}}}, {}, [{"name": "u", "key": "url", "path": "url"}]),
    (
        {"external": {"urlSecret": {"name": "u", "key": "x"}, "passwordSecret": {"name": "p"}}},
        {},
        [{"name": "u", "key": "x", "path": "url"}, {"name": "p", "key": "password", "path": "password"}],
    ),
)


@pytest.mark.parametrize(("redis", "written", "secrets"), EXTERNAL)
def test_where_a_routers_redis_is(redis: Document, written: Document, secrets: list[Document]) -> None:
    documents = render({**pipeline(), "router": {"spec": {"redis": redis}}})
    assert documents["ConfigMap/weir-pipeline"]["data"] == {**written, "weir.prefix": ""}
    sources = at(pods(documents)[0], "volumes.[name=redis-weir].projected.sources")
    found = [
        {"name": part["secret"]["name"], **item}
        for part in sources
        if "secret" in part
        for item in part["secret"]["items"]
    ]
    assert found == secrets
    items = next(part["configMap"]["items"] for part in sources if "configMap" in part)
    assert {item["key"] for item in items} == set(documents["ConfigMap/weir-pipeline"]["data"])
    # The operator guards its own Redis alone.
    assert ("NetworkPolicy/weir-redis-pipeline" in documents) == ("external" not in redis)


def test_both_routers_are_read() -> None:
    documents = render({**pipeline(), **NOTIFIER})
    name, path = INGEST.split(" ")
    arguments = at(documents[name], f"{path}.args")
    assert "--redis-dir=/etc/weir/redis/weir" in arguments and "--redis-dir=/etc/weir/redis/weir-ntf" in arguments
    assert documents["ConfigMap/weir-pipeline"]["data"]["weir-ntf.prefix"] == "ntf"
    other = render({**pipeline(), "notifier": {"enabled": True, "spec": {"redis": {"prefix": "push"}}}})
    assert other["ConfigMap/weir-pipeline"]["data"]["weir-ntf.prefix"] == "push"


def test_a_volume_of_one_node_brings_runs_to_the_node_of_the_reader() -> None:
    name, path = RUN_POD.split(" ")
    path = f"{path}.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution.0.labelSelector.matchLabels"
    labels = at(render(MODES["stream"])[name], path)
    reader = at(render(MODES["stream"])[READER], "spec.template.metadata.labels")
    assert labels["weir.dev/pipeline"] == "ingest" and labels.items() <= reader.items()
    assert at(render(pipeline(mode="stream", storage={"accessMode": "ReadWriteMany"}))[name], path) is None


def test_keys_of_a_bucket_reach_executors_by_their_secret() -> None:
    values: Any = pipeline(mode="spark", storage={"s3": {"bucket": "numbers", "secretName": "keys"}})
    executor = pods(render(values))[1]["containers"][0]
    assert at(executor, "env.[name=AWS_ACCESS_KEY_ID].valueFrom.secretKeyRef.name") == "keys"
    assert executor["command"] == ["python3", "-m", "weir.pipeline.executor"]


REFUSED = (
    (pipeline(mode="spark"), "executors write the tables from other nodes"),
    ({**pipeline(), "router": {"enabled": False}}, "neither a router nor a notifier"),
)


@pytest.mark.parametrize(("values", "reason"), REFUSED)
def test_what_cannot_work_is_refused_with_a_reason(values: Document, reason: str) -> None:
    done = template(values, check=False)
    assert done.returncode and reason in done.stderr


@pytest.mark.parametrize("values", [BUCKET, pipeline(mode="stream"), EXECUTORS])
def test_images_are_of_one_version(values: Document) -> None:
    documents = render({**values, "image": {"tag": "dev"}})
    assert {c["image"] for c in pods(documents)[0]["containers"]} == {"localhost/weir-pipeline:dev"}
    assert at(documents["Deployment/weir-operator"], f"{CONTAINER}.image") == "localhost/weir:dev"
