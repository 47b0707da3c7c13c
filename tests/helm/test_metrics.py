"""Every metric that a dashboard or an alert names exists in a running router or in the operator's registry."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator

import pytest

from tests.helm.test_in_step import used_metrics
from weir_operator import metrics as operator_metrics

SUFFIXES = {"histogram": ("_bucket", "_sum", "_count"), "summary": ("_sum", "_count")}


def families(text: str) -> set[str]:
    """Names a query can use, from the TYPE lines of an exposition."""
    found = re.findall(r"^# TYPE (\S+) (\S+)$", text, re.MULTILINE)
    return {name + suffix for name, kind in found for suffix in SUFFIXES.get(kind, ("",))}


@pytest.fixture(scope="module")
def routers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, ...]]:
    """An SMP router and a notification router: where their metrics are."""
    home = tmp_path_factory.mktemp("router")
    ready = home / "ready.json"
    command = [sys.executable, "-m", "weir.cli.main", "up", "--home", home / "data", "--host", "127.0.0.1", "--ntf"]
    command += ["--smp-port", "0", "--ntf-port", "0", "--http-port", "0", "--edges", "1", "--ready-file", ready]
    process = subprocess.Popen(
        [str(part) for part in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    try:
        deadline = time.monotonic() + 40
        while not ready.exists():
            assert process.poll() is None and time.monotonic() < deadline, process.stdout and process.stdout.read()
            time.sleep(0.1)
        told = json.loads(ready.read_text())
        yield tuple(one["metrics"].removesuffix("/metrics") for one in (told, told["ntf"]))
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(30)


def page(url: str) -> str:
    with urllib.request.urlopen(url, timeout=10) as answer:
        text: str = answer.read().decode()
    return text


def test_every_metric_exists(routers: tuple[str, ...]) -> None:
    known = families(operator_metrics.render().decode())
    for router in routers:
        known |= families(page(f"{router}/metrics")) | families(page(f"{router}/metrics/edge"))
    assert sorted(used_metrics() - known) == []


def test_every_one_of_ours_is_shown_somewhere(routers: tuple[str, ...]) -> None:
    """Every metric of ours is on a dashboard, or is left out for a reason."""
    left_out = {"weir_edge_info", "weir_edge_events", "weir_handshakes", "weir_outgoing_bytes"}
    # The reference's names are shown where they say something here; its own dashboards show them all.
    fleets = set().union(*(families(page(f"{router}/metrics")) for router in routers))
    ours = {name for name in fleets if name.startswith("weir_")} | families(operator_metrics.render().decode())
    shown = used_metrics()
    missing = {name for name in ours if not name.endswith(("_created", "_sum", "_count"))} - shown - left_out
    assert sorted(missing) == []


def test_dashboards_show_a_good_part_of_it() -> None:
    assert len(used_metrics()) > 60
