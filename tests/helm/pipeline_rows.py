"""The rows of the data pipeline's options, as in option_rows.py."""

from __future__ import annotations

from typing import Any

from tests.helm.charts import Document
from tests.helm.option_rows import ANTI, CONTAINER, GONE, POD, TOLERATION, Row

RUN = "CronJob/weir-pipeline spec.jobTemplate.spec"
RUN_POD = f"{RUN}.template.spec"
INGEST, MAKE, REPORT = (f"{RUN_POD}.{part}" for part in ("initContainers.0", "initContainers.1", "containers.0"))
READER = "Deployment/weir-pipeline"
CLAIM = "PersistentVolumeClaim/weir-pipeline"


def pipeline(**more: Any) -> Document:
    return {"pipeline": {"enabled": True, **more}}


EXECUTORS = pipeline(mode="spark", storage={"accessMode": "ReadWriteMany"})
BUCKET = pipeline(storage={"s3": {"bucket": "numbers"}})

PIPELINE_ROWS = (
    Row("pipeline.enabled", True, {"CronJob/weir-pipeline": True, CLAIM: True, READER: GONE}),
    Row(
        "pipeline.mode",
        "stream",
        {READER: True, f"{RUN_POD}.initContainers.0.name": "tables", f"{READER} spec.strategy.type": "Recreate"},
        pipeline(),
    ),
    Row("pipeline.schedule", "@daily", {f"{RUN.replace('.jobTemplate.spec', '')}.schedule": "@daily"}, pipeline()),
    Row("pipeline.every", "10s", {f"{READER} {CONTAINER}.args.4": "--every=10s"}, pipeline(mode="stream")),
    Row("pipeline.image.repository", "reg.example/p", {f"{INGEST}.image": "reg.example/p:0.1.0"}, pipeline()),
    Row("pipeline.image.tag", "7", {f"{MAKE}.image": "localhost/weir-pipeline:7"}, pipeline()),
    Row(
        "pipeline.image.digest",
        "sha256:" + "cd" * 32,
        {f"{REPORT}.image": "localhost/weir-pipeline@sha256:" + "cd" * 32},
        pipeline(),
    ),
    Row(
        "pipeline.storage.existingClaim",
        "mine",
        {CLAIM: GONE, f"{RUN_POD}.volumes.[name=data].persistentVolumeClaim.claimName": "mine"},
        pipeline(),
    ),
    Row("pipeline.storage.size", "5Gi", {f"{CLAIM} spec.resources.requests.storage": "5Gi"}, pipeline()),
    Row("pipeline.storage.storageClassName", "fast", {f"{CLAIM} spec.storageClassName": "fast"}, pipeline()),
    Row("pipeline.storage.accessMode", "ReadWriteMany", {f"{CLAIM} spec.accessModes": ["ReadWriteMany"]}, pipeline()),
    Row(
        "pipeline.storage.s3.bucket",
        "numbers",
        {f"{part}.args.2": "--tables=s3a://numbers/weir/tables" for part in (INGEST, MAKE, REPORT)},
        pipeline(),
    ),
    Row("pipeline.storage.s3.path", "here", {f"{INGEST}.args.2": "--tables=s3a://numbers/here"}, BUCKET),
    Row(
        "pipeline.storage.s3.endpoint",
        "http://minio:9000",
        {
            f"{INGEST}.env.[name=AWS_ENDPOINT_URL].value": "http://minio:9000",
            f"{REPORT}.env.[name=AWS_ALLOW_HTTP].value": "true",
        },
        BUCKET,
    ),
    Row("pipeline.storage.s3.region", "eu", {f"{INGEST}.env.[name=AWS_REGION].value": "eu"}, BUCKET),
    Row(
        "pipeline.storage.s3.secretName",
        "keys",
        {f"{MAKE}.env.[name=AWS_SECRET_ACCESS_KEY].valueFrom.secretKeyRef.name": "keys"},
        BUCKET,
    ),
    Row("pipeline.retention.bronze", 3, {f"{MAKE}.args.3": "--keep-bronze=3"}, pipeline()),
    Row("pipeline.retention.silver", 4, {f"{MAKE}.args.4": "--keep-silver=4"}, pipeline()),
    Row("pipeline.retention.gold", 5, {f"{MAKE}.args.5": "--keep-gold=5"}, pipeline()),
    Row("pipeline.report.days", 30, {f"{REPORT}.args.4": "--days=30"}, pipeline()),
    Row("pipeline.memory", "2g", {f"{MAKE}.args.6": "--memory=2g", f"{INGEST}.args.5": "--memory=2g"}, pipeline()),
    Row("pipeline.resources", {"limits": {"cpu": "2"}}, {f"{INGEST}.resources.limits.cpu": "2"}, pipeline()),
    Row("pipeline.scratchSize", "1Gi", {f"{RUN_POD}.volumes.[name=tmp].emptyDir.sizeLimit": "1Gi"}, pipeline()),
    *(
        Row(f"pipeline.executors.{name}", value, {f"{INGEST}.args.{at}": f"--conf=spark.{setting}={value}"}, EXECUTORS)
        for at, name, value, setting in (
            (19, "instances", 7, "executor.instances"),
            (20, "cores", 3, "executor.cores"),
            (21, "memory", "3g", "executor.memory"),
            (22, "memoryOverhead", "2g", "executor.memoryOverhead"),
            (23, "requestCPU", "250m", "kubernetes.executor.request.cores"),
        )
    ),
    Row("pipeline.sparkUI", True, {f"{MAKE}.args.7": "--spark-ui"}, pipeline()),
    Row("pipeline.conf", {"spark.a": "b"}, {f"{INGEST}.args.6": "--conf=spark.a=b"}, pipeline()),
    Row("pipeline.timeoutSeconds", 90, {f"{RUN}.activeDeadlineSeconds": 90}, pipeline()),
    Row("pipeline.history.succeeded", 9, {"CronJob/weir-pipeline spec.successfulJobsHistoryLimit": 9}, pipeline()),
    Row("pipeline.history.failed", 9, {"CronJob/weir-pipeline spec.failedJobsHistoryLimit": 9}, pipeline()),
    Row(
        "pipeline.serviceAccount.annotations",
        {"role": "r"},
        {"ServiceAccount/weir-pipeline metadata.annotations": {"role": "r"}},
        pipeline(),
    ),
    Row(
        "pipeline.networkPolicy",
        False,
        {"NetworkPolicy/weir-pipeline": GONE, "NetworkPolicy/weir-redis-pipeline": GONE},
        pipeline(),
    ),
    Row("pipeline.nodeSelector", {"disk": "ssd"}, {f"{RUN_POD}.nodeSelector": {"disk": "ssd"}}, pipeline()),
    Row("pipeline.tolerations", [TOLERATION], {f"{RUN_POD}.tolerations": [TOLERATION]}, pipeline()),
    Row(
        "pipeline.affinity",
        ANTI,
        {f"{RUN_POD}.affinity": ANTI, f"{READER} {POD}.affinity": ANTI},
        pipeline(mode="stream"),
    ),
    Row("pipeline.priorityClassName", "low", {f"{RUN_POD}.priorityClassName": "low"}, pipeline()),
    Row("pipeline.podLabels", {"a": "b"}, {f"{RUN}.template.metadata.labels.a": "b"}, pipeline()),
    Row("pipeline.podAnnotations", {"a": "b"}, {f"{RUN}.template.metadata.annotations": {"a": "b"}}, pipeline()),
    Row("pipeline.extraEnv", [{"name": "TZ", "value": "UTC"}], {f"{INGEST}.env.[name=TZ].value": "UTC"}, pipeline()),
)
