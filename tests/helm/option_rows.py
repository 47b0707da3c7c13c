"""A table of the chart's own values: one row per option, with what it changes in the manifests."""

from __future__ import annotations

from types import MappingProxyType
from typing import Any, NamedTuple

from tests.helm.charts import Document, nested

OPERATOR = "Deployment/weir-operator"
POD = "spec.template.spec"
CONTAINER = f"{POD}.containers.0"
ENV = f"{CONTAINER}.env"
MONITOR, RULE = "monitoring.coreos.com/v1/ServiceMonitor", "monitoring.coreos.com/v1/PrometheusRule"
GONE = object()


class Row(NamedTuple):
    option: str
    value: Any
    expected: dict[str, Any]  # "Kind/name path" -> value; "Kind/name" -> GONE or a whole document's presence
    more: Document = MappingProxyType({})  # type: ignore[assignment]
    apis: tuple[str, ...] = ()


SERVICE = {"name": "bot", "spec": {"role": "Messaging", "keyPair": {}}}
TEST_JOBS = ("jobs/weir-test", "jobs/weir-ntf-test")
TOLERATION = {"key": "spot", "operator": "Exists"}
ANTI = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": []}}

ROWS = (
    Row("nameOverride", "smp", {"Deployment/weir-smp-operator metadata.labels.app\\.kubernetes\\.io/name": "smp"}),
    Row("fullnameOverride", "edge", {"Deployment/edge-operator": True, "SMPRouter/edge": True, OPERATOR: GONE}),
    Row("image.repository", "reg.example/weir", {f"{OPERATOR} {CONTAINER}.image": "reg.example/weir:0.1.0"}),
    Row(
        "image.tag",
        "1.2",
        {
            f"{OPERATOR} {CONTAINER}.image": "localhost/weir:1.2",
            f"{OPERATOR} {ENV}.[name=WEIR_OPERATOR_IMAGE].value": "localhost/weir:1.2",
            f"Job/weir-crds {CONTAINER}.image": "localhost/weir:1.2",
            f"Job/weir-uninstall {CONTAINER}.image": "localhost/weir:1.2",
            f"Job/weir-test {CONTAINER}.image": "localhost/weir:1.2",
        },
    ),
    Row(
        "image.digest",
        "sha256:" + "ab" * 32,
        {f"{OPERATOR} {CONTAINER}.image": "localhost/weir@sha256:" + "ab" * 32},
        {"image": {"tag": "ignored"}},
    ),
    Row(
        "image.pullPolicy",
        "Always",
        {
            f"{OPERATOR} {CONTAINER}.imagePullPolicy": "Always",
            f"{OPERATOR} {ENV}.[name=WEIR_OPERATOR_IMAGE_PULL_POLICY].value": "Always",
        },
    ),
    Row(
        "image.pullSecrets",
        ["one", "two"],
        {
            f"{OPERATOR} {POD}.imagePullSecrets": [{"name": "one"}, {"name": "two"}],
            f"Job/weir-crds {POD}.imagePullSecrets": [{"name": "one"}, {"name": "two"}],
            f"Job/weir-test {POD}.imagePullSecrets": [{"name": "one"}, {"name": "two"}],
            f"{OPERATOR} {ENV}.[name=WEIR_OPERATOR_IMAGE_PULL_SECRETS].value": "one,two",
        },
    ),
    Row(
        "operator.enabled",
        False,
        {
            OPERATOR: GONE,
            "Service/weir-operator": GONE,
            "ServiceAccount/weir-operator": GONE,
            "ClusterRole/weir-operator-chat": GONE,
            "NetworkPolicy/weir-operator": GONE,
            "SMPRouter/weir": True,
        },
    ),
    Row("operator.replicas", 2, {f"{OPERATOR} spec.replicas": 2, "PodDisruptionBudget/weir-operator": True}),
    Row(
        "operator.watchNamespaces",
        ["a", "b"],
        {
            f"{OPERATOR} {ENV}.[name=WEIR_OPERATOR_NAMESPACES].value": "a,b",
            "ClusterRole/weir-operator-chat": GONE,
            "ClusterRoleBinding/weir-operator-chat": GONE,
        },
    ),
    Row("operator.logLevel", "debug", {f"{OPERATOR} {ENV}.[name=WEIR_LOG_LEVEL].value": "debug"}),
    Row(
        "operator.resources",
        {"limits": {"cpu": "1"}},
        {f"{OPERATOR} {CONTAINER}.resources.limits": {"cpu": "1", "memory": "256Mi"}},
    ),
    Row(
        "operator.nodeSelector",
        {"disk": "ssd"},
        {f"{OPERATOR} {POD}.nodeSelector": {"disk": "ssd"}, f"Job/weir-crds {POD}.nodeSelector": {"disk": "ssd"}},
    ),
    Row(
        "operator.tolerations",
        [TOLERATION],
        {f"{OPERATOR} {POD}.tolerations": [TOLERATION], f"Job/weir-uninstall {POD}.tolerations": [TOLERATION]},
    ),
    Row("operator.affinity", ANTI, {f"{OPERATOR} {POD}.affinity": ANTI}),
    Row("operator.priorityClassName", "high", {f"{OPERATOR} {POD}.priorityClassName": "high"}),
    Row("operator.podLabels", {"team": "chat"}, {f"{OPERATOR} spec.template.metadata.labels.team": "chat"}),
    Row("operator.podAnnotations", {"a": "b"}, {f"{OPERATOR} spec.template.metadata.annotations": {"a": "b"}}),
    Row("operator.extraEnv", [{"name": "TZ", "value": "UTC"}], {f"{OPERATOR} {ENV}.[name=TZ].value": "UTC"}),
    Row(
        "operator.disruptionBudget",
        False,
        {"PodDisruptionBudget/weir-operator": GONE},
        {"operator": {"replicas": 2}},
    ),
    Row("operator.networkPolicy", False, {"NetworkPolicy/weir-operator": GONE}),
    Row(
        "rbac.create",
        False,
        {
            "ClusterRole/weir-operator-chat": GONE,
            "ClusterRoleBinding/weir-operator-chat": GONE,
            "Role/weir-operator-own": GONE,
            "ServiceAccount/weir-operator": True,
        },
    ),
    Row(
        "serviceAccount.create",
        False,
        {"ServiceAccount/weir-operator": GONE, f"{OPERATOR} {POD}.serviceAccountName": "mine"},
        {"serviceAccount": {"name": "mine"}},
    ),
    Row(
        "serviceAccount.name",
        "mine",
        {
            "ServiceAccount/mine": True,
            f"{OPERATOR} {POD}.serviceAccountName": "mine",
            "ClusterRoleBinding/weir-operator-chat subjects.0.name": "mine",
            "RoleBinding/weir-operator-own subjects.0.name": "mine",
        },
    ),
    Row("serviceAccount.annotations", {"a": "b"}, {"ServiceAccount/weir-operator metadata.annotations": {"a": "b"}}),
    Row(
        "crds.upgrade", False, {"Job/weir-crds": GONE, "ConfigMap/weir-crds": GONE, "ClusterRole/weir-crds-chat": GONE}
    ),
    Row("router.enabled", False, {"SMPRouter/weir": GONE, "Job/weir-test": GONE, "Job/weir-uninstall": GONE}),
    Row(
        "router.name",
        "main",
        {
            "SMPRouter/main": True,
            f"Job/weir-uninstall {CONTAINER}.args": ["delete", "180", "smprouters/main", *TEST_JOBS],
            f"Job/weir-test {CONTAINER}.env.0.valueFrom.configMapKeyRef.name": "main-address",
        },
    ),
    Row("router.labels", {"team": "chat"}, {"SMPRouter/weir metadata.labels.team": "chat"}),
    Row("router.annotations", {"a": "b"}, {"SMPRouter/weir metadata.annotations": {"a": "b"}}),
    Row(
        "notifier.enabled",
        True,
        {
            "NTFRouter/weir-ntf": True,
            "Job/weir-ntf-test": True,
            f"Job/weir-uninstall {CONTAINER}.args": [
                *("delete", "180", "ntfrouters/weir-ntf", "smprouters/weir", *TEST_JOBS)
            ],
        },
    ),
    Row(
        "notifier.name",
        "push",
        {
            "NTFRouter/push": True,
            f"Job/weir-ntf-test {CONTAINER}.env.0.valueFrom.configMapKeyRef.name": "push-address",
        },
        {"notifier": {"enabled": True}},
    ),
    Row("notifier.labels", {"a": "b"}, {"NTFRouter/weir-ntf metadata.labels.a": "b"}, {"notifier": {"enabled": True}}),
    Row(
        "notifier.annotations",
        {"a": "b"},
        {"NTFRouter/weir-ntf metadata.annotations": {"a": "b"}},
        {"notifier": {"enabled": True}},
    ),
    Row(
        "services",
        [SERVICE],
        {
            "SMPService/bot spec": {"router": "weir", "role": "Messaging", "keyPair": {}},
            f"Job/weir-uninstall {CONTAINER}.args": [
                "delete",
                "180",
                "smpservices/bot",
                "smprouters/weir",
                *TEST_JOBS,
            ],
        },
    ),
    Row("services[].name", "bot", {"SMPService/bot": True}, {"services": [SERVICE]}),
    Row("services[].labels", {"a": "b"}, {"SMPService/bot metadata.labels.a": "b"}, {"services": [SERVICE]}),
    Row(
        "services[].annotations",
        {"a": "b"},
        {"SMPService/bot metadata.annotations": {"a": "b"}},
        {"services": [SERVICE]},
    ),
    Row(
        "observability.otlp.endpoint",
        "http://collector:4318",
        {
            "SMPRouter/weir spec.telemetry.traces": {
                "endpoint": "http://collector:4318",
                "sampleRatio": 0.01,
                "sessions": "off",
            },
            "NTFRouter/weir-ntf spec.telemetry.traces.endpoint": "http://collector:4318",
            # Other fields of the spec stay.
            "SMPRouter/weir spec.telemetry.logLevel": "debug",
        },
        {"notifier": {"enabled": True}, "router": {"spec": {"telemetry": {"logLevel": "debug"}}}},
    ),
    Row(
        "observability.otlp.sampleRatio",
        0.5,
        {"SMPRouter/weir spec.telemetry.traces.sampleRatio": 0.5},
        {"observability": {"otlp": {"endpoint": "http://c"}}},
    ),
    Row(
        "observability.otlp.sessions",
        "all",
        {"SMPRouter/weir spec.telemetry.traces.sessions": "all"},
        {"observability": {"otlp": {"endpoint": "http://c"}}},
    ),
    Row("observability.serviceMonitor.enabled", False, {"ServiceMonitor/weir-operator": GONE}, apis=(MONITOR,)),
    Row(
        "observability.serviceMonitor.interval",
        "5s",
        {"ServiceMonitor/weir-operator spec.endpoints.0.interval": "5s"},
        apis=(MONITOR,),
    ),
    Row(
        "observability.serviceMonitor.labels",
        {"release": "prom"},
        {"ServiceMonitor/weir-operator metadata.labels.release": "prom"},
        apis=(MONITOR,),
    ),
    Row(
        "observability.dashboards.enabled",
        True,
        {
            f"ConfigMap/weir-dashboard-{name} metadata.labels.grafana_dashboard": "1"
            for name in ("overview", "services", "notifications", "edges", "redis", "operator")
        },
    ),
    Row(
        "observability.dashboards.namespace",
        "grafana",
        {"ConfigMap/weir-dashboard-edges metadata.namespace": "grafana"},
        {"observability": {"dashboards": {"enabled": True}}},
    ),
    Row(
        "observability.dashboards.labels",
        {"find": "me"},
        {"ConfigMap/weir-dashboard-edges metadata.labels.find": "me"},
        {"observability": {"dashboards": {"enabled": True}}},
    ),
    Row(
        "observability.dashboards.annotations",
        {"folder": "Weir"},
        {"ConfigMap/weir-dashboard-edges metadata.annotations": {"folder": "Weir"}},
        {"observability": {"dashboards": {"enabled": True}}},
    ),
    Row("observability.alerts.enabled", True, {"PrometheusRule/weir spec.groups.0.name": "weir-router"}, apis=(RULE,)),
    Row(
        "observability.alerts.labels",
        {"release": "prom"},
        {"PrometheusRule/weir metadata.labels.release": "prom"},
        {"observability": {"alerts": {"enabled": True}}},
        (RULE,),
    ),
    Row(
        "observability.alerts.disabled",
        ["WeirFoldStuck", "WeirServiceDrift"],
        {"PrometheusRule/weir spec.groups.[name=weir-services]": None},
        {"observability": {"alerts": {"enabled": True}}},
        (RULE,),
    ),
    Row(
        "test.edges",
        3,
        {f"Job/weir-test {CONTAINER}.args.4": "--edges=3", f"Job/weir-ntf-test {CONTAINER}.args.4": "--edges=3"},
        {"notifier": {"enabled": True}},
    ),
    Row(
        "test.timeoutSeconds",
        33,
        {"Job/weir-test spec.activeDeadlineSeconds": 33, "Job/weir-ntf-test spec.activeDeadlineSeconds": 33},
        {"notifier": {"enabled": True}},
    ),
    Row("uninstall.wait", False, {"Job/weir-uninstall": GONE, "Role/weir-uninstall": GONE}),
    Row(
        "uninstall.timeoutSeconds",
        30,
        {
            "Job/weir-uninstall spec.activeDeadlineSeconds": 90,
            f"Job/weir-uninstall {CONTAINER}.args": ["delete", "30", "smprouters/weir", *TEST_JOBS],
        },
    ),
)


def given(row: Row) -> Document:
    if row.option.startswith("services[]."):
        return {"services": [row.more["services"][0] | {row.option.split(".", 1)[1]: row.value}]}

    def merge(one: Any, other: Any) -> Any:
        if isinstance(one, dict) and isinstance(other, dict):
            return {**one, **{key: merge(one.get(key), value) for key, value in other.items()}}
        return other

    merged = merge(dict(row.more), nested(row.option, row.value))
    assert isinstance(merged, dict)
    return merged
