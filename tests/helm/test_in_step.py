"""Generated files are up to date, and the names in dashboards and alerts exist."""

from __future__ import annotations

import json
import re

import pytest
import yaml

from tests.helm.charts import CHART, NEEDS_HELM, REPO, tool
from tests.helm.scripts import chart, dashboards


def test_made_files_are_in_step() -> None:
    assert chart.check() == [], "run scripts/chart.py sync"


@NEEDS_HELM
def test_the_operator_for_kustomize_is_in_step() -> None:
    tool("helm")
    assert (REPO / "k8s/base/operator.yaml").read_text() == chart.operator_yaml(), "run scripts/chart.py sync"


def test_dashboards_are_in_step() -> None:
    stale = [file.name for file, text in dashboards.render().items() if file.read_text() != text]
    assert stale == [], "run scripts/dashboards.py"


def test_chart_and_package_have_one_version() -> None:
    import tomllib

    package = tomllib.loads((REPO / "pyproject.toml").read_text())["project"]["version"]
    about = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert about["appVersion"] == package
    assert f"newTag: {package}\n" in (REPO / "k8s/base/kustomization.yaml").read_text()


def test_the_chart_and_the_docs_ask_for_the_kubernetes_that_the_pods_need() -> None:
    """An edge's preStop sleep needs Kubernetes 1.30: older API servers refuse the Deployment."""
    about = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert about["kubeVersion"] == ">=1.30.0-0"
    assert "Kubernetes 1.30 or newer" in (REPO / "docs/deploy.md").read_text()


@pytest.mark.parametrize("name", sorted(dashboards.DASHBOARDS))
def test_dashboard_is_sound(name: str) -> None:
    made = json.loads((REPO / f"k8s/dashboards/{name}.json").read_text())
    assert made["uid"] == f"weir-{name}"
    ids = [panel["id"] for panel in made["panels"]]
    assert len(set(ids)) == len(ids)
    taken: set[tuple[int, int]] = set()
    for panel in made["panels"]:
        place = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert place["x"] + place["w"] <= 24
        assert not cells & taken, f"{panel['title']} lies over another panel"
        taken |= cells
        for target in panel["targets"]:
            assert target["expr"].count("(") == target["expr"].count(")")
            assert "$namespace" in target["expr"]


def test_alerts_say_what_to_do() -> None:
    groups = yaml.safe_load((REPO / "k8s/alerts/weir.yaml").read_text())["groups"]
    rules = [rule for group in groups for rule in group["rules"]]
    assert len({rule["alert"] for rule in rules}) == len(rules) >= 12
    for rule in rules:
        assert rule["labels"]["severity"] in {"critical", "warning", "info"}
        assert rule["annotations"]["summary"] and rule["annotations"]["description"]


def used_metrics() -> set[str]:
    expressions = [
        target["expr"]
        for name in dashboards.DASHBOARDS
        for panel in json.loads((REPO / f"k8s/dashboards/{name}.json").read_text())["panels"]
        for target in panel["targets"]
    ]
    groups = yaml.safe_load((REPO / "k8s/alerts/weir.yaml").read_text())["groups"]
    expressions += [rule["expr"] for group in groups for rule in group["rules"]]
    return {name for text in expressions for name in re.findall(r"\b(?:simplex_smp|simplex_ntf|weir)_[a-z0-9_]+", text)}
