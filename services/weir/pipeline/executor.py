"""Starts one of Spark's executors in a pod: `python3 -m weir.pipeline.executor`, as the chart's pod template says.

Spark's Kubernetes scheduler describes an executor by environment variables and the argument "executor", for the start
script of Spark's own image. This image has none: the command line that the script would make is made here.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NoReturn

_MAIN: Final = "org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend"
_ARGUMENTS: Final = {
    "--driver-url": "SPARK_DRIVER_URL",
    "--executor-id": "SPARK_EXECUTOR_ID",
    "--cores": "SPARK_EXECUTOR_CORES",
    "--app-id": "SPARK_APPLICATION_ID",
    "--hostname": "SPARK_EXECUTOR_POD_IP",
    "--resourceProfileId": "SPARK_RESOURCE_PROFILE_ID",
    "--podName": "SPARK_EXECUTOR_POD_NAME",
}


def command(environment: Mapping[str, str], jars: Path) -> list[str]:
    """The command line of an executor's JVM. Raises KeyError of a variable that Spark's scheduler sets."""
    numbered = {int(found[1]): value for name, value in environment.items() if (found := _option(name))}
    memory = environment["SPARK_EXECUTOR_MEMORY"]
    classpath = [environment.get("SPARK_CLASSPATH", ""), f"{environment.get('SPARK_CONF_DIR', '')}", f"{jars}/*"]
    return [
        f"{environment['JAVA_HOME']}/bin/java",
        *(numbered[number] for number in sorted(numbered)),
        f"-Xms{memory}",
        f"-Xmx{memory}",
        "-cp",
        ":".join(filter(None, classpath)),
        _MAIN,
        *(word for option, name in _ARGUMENTS.items() for word in (option, environment[name])),
    ]


def _option(name: str) -> re.Match[str] | None:
    return re.fullmatch(r"SPARK_JAVA_OPT_(\d+)", name)


def main() -> NoReturn:
    import pyspark

    try:
        line = command(os.environ, Path(pyspark.__file__).parent / "jars")
    except KeyError as error:
        print(f"weir.pipeline.executor: {error.args[0]} is not set: Spark's scheduler starts this", file=sys.stderr)
        sys.exit(2)
    # Spark puts the jars that the driver serves into the working directory.
    os.chdir(os.environ.get("SPARK_LOCAL_DIRS", "/tmp").split(",")[0])
    os.execv(line[0], line)


if __name__ == "__main__":
    main()
