"""The command line of Spark's executors in pods."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from weir.pipeline.executor import command

ENVIRONMENT = {
    "JAVA_HOME": "/usr/lib/jvm/java-17",
    "SPARK_DRIVER_URL": "spark://CoarseGrainedScheduler@10.0.0.7:7078",
    "SPARK_EXECUTOR_ID": "3",
    "SPARK_EXECUTOR_CORES": "2",
    "SPARK_EXECUTOR_MEMORY": "1024m",
    "SPARK_APPLICATION_ID": "spark-1",
    "SPARK_EXECUTOR_POD_IP": "10.0.0.8",
    "SPARK_RESOURCE_PROFILE_ID": "0",
    "SPARK_EXECUTOR_POD_NAME": "weir-exec-3",
    "SPARK_CONF_DIR": "/opt/spark/conf",
    **{f"SPARK_JAVA_OPT_{number}": f"-Dn={number}" for number in (10, 2, 0)},
}


def test_the_line_says_what_the_scheduler_said() -> None:
    line = command(ENVIRONMENT, Path("/jars"))
    assert line[:4] == ["/usr/lib/jvm/java-17/bin/java", "-Dn=0", "-Dn=2", "-Dn=10"]
    assert line[4:8] == ["-Xms1024m", "-Xmx1024m", "-cp", "/opt/spark/conf:/jars/*"]
    rest = line[line.index("org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend") + 1 :]
    assert dict(zip(rest[::2], rest[1::2], strict=True)) == {
        "--driver-url": "spark://CoarseGrainedScheduler@10.0.0.7:7078",
        "--executor-id": "3",
        "--cores": "2",
        "--app-id": "spark-1",
        "--hostname": "10.0.0.8",
        "--resourceProfileId": "0",
        "--podName": "weir-exec-3",
    }


def test_started_by_hand_it_says_in_one_line_what_is_missing(tmp_path: Path) -> None:
    (tmp_path / "pyspark.py").write_text("")
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-m", "weir.pipeline.executor"], capture_output=True, text=True, env=environment, check=False
    )
    assert done.returncode == 2
    assert "SPARK_EXECUTOR_MEMORY is not set" in done.stderr and done.stderr.count("\n") == 1
