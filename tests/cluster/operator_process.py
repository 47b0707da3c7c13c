"""`weir operator` as a process in the cluster's network. Unlike a pod, a test can suspend and kill it."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

from tests.cluster.harness import Cluster, wait_for


class OperatorProcess:
    def __init__(
        self,
        cluster: Cluster,
        directory: Path,
        *,
        image: str,
        namespace: str,
        kubeconfig: Path | None = None,
        watch: str | None = None,
        port: int = 8099,
        options: tuple[str, ...] = (),
    ) -> None:
        self._cluster = cluster
        self._port = port
        self.log = directory / f"operator-{port}.log"
        self._line = [
            *cluster.command(sys.executable, "-m", "weir.cli.main", "operator"),
            f"--namespaces={namespace if watch is None else watch}",
            f"--namespace={namespace}",
            f"--image={image}",
            f"--http-port={port}",
            "--http-listen=127.0.0.1",
            "--lease-seconds=3",
            "--observe-seconds=5",
            *options,
        ]
        self._environment = {**os.environ, "KUBECONFIG": str(kubeconfig or cluster.inside)}
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> OperatorProcess:
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                self._line, env=self._environment, stdout=log, stderr=subprocess.STDOUT, start_new_session=True
            )
        return self

    def __enter__(self) -> OperatorProcess:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def pid(self) -> int:
        assert self.process is not None
        return self.process.pid

    def kill(self) -> None:
        """kill -9, as when a node fails."""
        if self.process is not None:
            self.process.kill()
            self.process.wait(10)
            self.process = None

    def stop(self) -> int | None:
        if self.process is None:
            return None
        self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(20)
        finally:
            self.kill()

    def wait_working(self) -> OperatorProcess:
        wait_for("the operator to work", lambda: self.metric("weir_operator_leader") == 1.0, 30)
        return self

    def metrics(self) -> dict[str, float]:
        text = self._cluster.run("curl", "-s", f"http://127.0.0.1:{self._port}/metrics", inside=True, check=False)
        return {m[1]: float(m[2]) for m in re.finditer(r"^(\w+(?:{[^}]*})?) ([\d.eE+-]+)$", text, re.M)}

    def metric(self, name: str) -> float | None:
        return self.metrics().get(name)

    def requests(self) -> float:
        """Requests to the API server so far, without watches."""
        return sum(
            v
            for k, v in self.metrics().items()
            if k.startswith("weir_operator_api_requests_total") and "WATCH" not in k
        )

    def rss_mib(self) -> float:
        text = Path(f"/proc/{self.pid}/status").read_text()
        match = re.search(r"VmHWM:\s+(\d+)", text)
        assert match is not None
        return int(match[1]) / 1024

    def cpu_seconds(self) -> float:
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
