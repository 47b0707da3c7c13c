#!/usr/bin/env python3
"""Generates the Grafana dashboards in k8s/dashboards from the panels in scripts/panels: dashboards.py [--check]."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from panels.edges import EDGES
from panels.notifications import NOTIFICATIONS
from panels.operator_panels import OPERATOR
from panels.overview import OVERVIEW
from panels.queries import Panel
from panels.redis_panels import REDIS
from panels.services import SERVICES

OUT = Path(__file__).resolve().parent.parent / "k8s/dashboards"
WIDTH = 24


def panel(spec: Panel, number_: int, x: int, y: int) -> dict[str, Any]:
    stat = spec.kind == "stat"
    custom = {} if stat else {"lineWidth": 1, "fillOpacity": 10, "showPoints": "never"}
    if spec.stack:
        custom["stacking"] = {"mode": "normal"}
    made: dict[str, Any] = {
        "id": number_,
        "type": spec.kind,
        "title": spec.title,
        "description": spec.text,
        "gridPos": {"x": x, "y": y, "w": spec.width, "h": 4 if stat else 8},
        "datasource": {"type": "prometheus", "uid": "${datasource}"},
        "fieldConfig": {"defaults": {"unit": spec.unit, "min": 0, "custom": custom}, "overrides": []},
        "targets": [
            {"refId": chr(ord("A") + index), "expr": expression, "legendFormat": legend or "__auto"}
            for index, (expression, legend) in enumerate(spec.queries)
        ],
    }
    if stat:
        made["options"] = {"reduceOptions": {"calcs": ["lastNotNull"]}, "colorMode": "none"}
    else:
        made["options"] = {"legend": {"displayMode": "list", "placement": "bottom"}, "tooltip": {"mode": "multi"}}
    return made


def variable(name: str, query: str) -> dict[str, Any]:
    return {
        "name": name,
        "type": "query",
        "datasource": {"type": "prometheus", "uid": "${datasource}"},
        "definition": query,
        "query": {"query": query, "refId": name},
        "refresh": 2,
        "includeAll": True,
        "multi": True,
        "allValue": ".*",
        "current": {"text": ["All"], "value": ["$__all"]},
    }


def dashboard(name: str, title: str, panels: tuple[Panel, ...], source: str) -> dict[str, Any]:
    variables: list[dict[str, Any]] = [{"name": "datasource", "type": "datasource", "query": "prometheus"}]
    variables.append(variable("namespace", f"label_values({source}, namespace)"))
    if source != "weir_operator_leader":
        variables.append(variable("job", f'label_values({source}{{namespace=~"$namespace"}}, job)'))
    placed = []
    x = y = height = 0
    for index, spec in enumerate(panels):
        tall = 4 if spec.kind == "stat" else 8
        if x + spec.width > WIDTH or (height and tall != height):
            x, y = 0, y + height
        placed.append(panel(spec, index + 1, x, y))
        x, height = x + spec.width, tall
    return {
        "uid": f"weir-{name}",
        "title": f"Weir / {title}",
        "tags": ["weir"],
        "schemaVersion": 39,
        "editable": True,
        "refresh": "30s",
        "time": {"from": "now-6h", "to": "now"},
        "links": [{"type": "dashboards", "tags": ["weir"], "title": "Weir", "asDropdown": True, "includeVars": True}],
        "templating": {"list": variables},
        "panels": placed,
    }


DASHBOARDS = {
    "overview": ("Overview", OVERVIEW, "weir_edges"),
    "services": ("Services", SERVICES, "weir_edges"),
    "notifications": ("Notifications", NOTIFICATIONS, "weir_ntf_servers"),
    "edges": ("Edges", EDGES, "weir_edge_ready"),
    "redis": ("Redis", REDIS, "weir_edges"),
    "operator": ("Operator", OPERATOR, "weir_operator_leader"),
}


def render() -> dict[Path, str]:
    return {
        OUT / f"{name}.json": json.dumps(dashboard(name, *rest), indent=1, ensure_ascii=False) + "\n"
        for name, rest in DASHBOARDS.items()
    }


def main() -> int:
    stale = [file for file, text in render().items() if not file.exists() or file.read_text() != text]
    if "--check" in sys.argv:
        for file in stale:
            print(f"{file.name} is out of date: run scripts/dashboards.py", file=sys.stderr)
        return 1 if stale else 0
    OUT.mkdir(parents=True, exist_ok=True)
    for file, text in render().items():
        file.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
