#!/usr/bin/env python3
"""Generates the files in helm/ and k8s/ that follow from other files.

    chart.py sync     write the generated files
    chart.py check    list the generated files that are out of date, and fail if there are any

source                                          generated
k8s/crds, k8s/rbac, k8s/dashboards, k8s/alerts  copies in the chart, because Helm reads only files of the chart
helm/schema.yaml and the CRDs                   helm/weir/values.schema.json
the schema and values.yaml                      helm/weir/README.md
the chart, rendered by helm                     k8s/base/operator.yaml
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

REPO = Path(__file__).resolve().parent.parent
CHART = REPO / "helm/weir"
K8S = REPO / "k8s"
Schema = dict[str, Any]

# The keywords of a CRD's schema that JSON Schema has, too. Only the API server checks the others (CEL, list types).
KEPT = {
    *("type", "description", "default", "enum", "pattern", "format", "required", "anyOf", "properties", "items"),
    *("minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems", "maxProperties", "additionalProperties"),
}


def helm() -> str | None:
    cached = Path(os.environ.get("WEIR_CACHE", Path.home() / ".cache/weir")) / "cluster/bin/helm"
    return str(cached) if cached.exists() else shutil.which("helm")


def crd_spec(kind: str) -> Schema:
    for file in sorted((K8S / "crds").glob("weir.dev_*.yaml")):
        found = yaml.safe_load(file.read_text())
        if found["spec"]["names"]["kind"] == kind:
            return dict(found["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"])
    raise SystemExit(f"k8s/crds has no {kind}")


def from_crd(schema: Schema) -> Schema:
    open_ended = schema.get("x-kubernetes-preserve-unknown-fields") or schema.get("x-kubernetes-int-or-string")
    made = {key: value for key, value in schema.items() if key in KEPT}
    if schema.get("x-kubernetes-int-or-string"):
        made.pop("type", None)
    # A CRD has the default {} only so that the API server fills in the defaults inside the object.
    if made.get("default") == {}:
        del made["default"]
    if "properties" in made:
        made["properties"] = {name: from_crd(part) for name, part in made["properties"].items()}
        if not open_ended:
            made["additionalProperties"] = False
    for key in ("items", "additionalProperties"):
        if isinstance(made.get(key), dict):
            made[key] = from_crd(made[key])
    return made


def complete(schema: Schema) -> Schema:
    """Insert the CRDs' schemas into the chart's schema, and forbid unknown values everywhere."""
    if "crd" in schema:
        made = from_crd(crd_spec(schema["crd"]))
        required = [name for name in made.pop("required", []) if name not in schema.get("optional", [])]
        return made | ({"required": required} if required else {})
    made = dict(schema)
    if "properties" in made:
        made["properties"] = {name: complete(part) for name, part in made["properties"].items()}
        made["additionalProperties"] = False
    if isinstance(made.get("items"), dict):
        made["items"] = complete(made["items"])
    return made


def values_schema() -> Schema:
    made = complete(yaml.safe_load((REPO / "helm/schema.yaml").read_text()))
    # Helm passes `global` to every chart.
    made["properties"]["global"] = {"type": "object", "description": "Reserved by Helm."}
    return {"$schema": "http://json-schema.org/draft-07/schema#", "title": "weir", **made}


def leaves(schema: Schema, values: Any, path: str = "") -> Iterator[tuple[str, Schema, Any]]:
    """Yield (path, schema, default) of every value."""
    for name, part in schema.get("properties", {}).items():
        here = f"{path}.{name}" if path else name
        default = values.get(name) if isinstance(values, dict) and name in values else part.get("default")
        if "properties" in part:
            yield from leaves(part, default if default is not None else {}, here)
        elif part.get("type") == "array" and "properties" in part.get("items", {}):
            yield here, part, default
            yield from leaves(part["items"], {}, f"{here}[]")
        elif here != "global":
            yield here, part, default


def kind_of(schema: Schema) -> str:
    if "enum" in schema:
        return " / ".join(f"`{value}`" for value in schema["enum"])
    if schema.get("type") == "array":
        return f"list of {kind_of(schema.get('items', {}))}" if schema.get("items") else "list"
    if "anyOf" in schema:
        return " or ".join(part.get("type", "") for part in schema["anyOf"])
    return str(schema.get("type", "anything"))


def cell(text: str) -> str:
    return re.sub(r"\s+", " ", text).replace("|", "\\|")


def table(rows: Iterator[tuple[str, Schema, Any]] | list[tuple[str, Schema, Any]]) -> str:
    lines = ["| value | kind | default | meaning |", "|---|---|---|---|"]
    for path, part, default in rows:
        shown = (
            ""
            if default in (None, "")
            else f"`{json.dumps(default)}`"
            if not isinstance(default, str)
            else f"`{default}`"
        )
        lines.append(f"| `{path}` | {cell(kind_of(part))} | {cell(shown)} | {cell(part.get('description', ''))} |")
    return "\n".join(lines)


def readme(schema: Schema) -> str:
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    rows = list(leaves(schema, values))
    kinds = {"router.spec.": "SMPRouter", "notifier.spec.": "NTFRouter", "services[].spec.": "SMPService"}
    own = [row for row in rows if not row[0].startswith(tuple(kinds))]
    parts = [
        (REPO / "helm/README.in.md").read_text().replace("{version}", chart["version"]),
        "## The chart's values\n",
        table(own),
    ]
    for prefix, kind in kinds.items():
        parts += [
            f"\n## `{prefix[:-1]}`: the {kind}'s spec\n",
            "The chart passes these values on unchanged. The API server fills in the defaults.\n",
            table([row for row in rows if row[0].startswith(prefix)]),
        ]
    return "\n".join(parts) + "\n"


BASE_HEADER = "# Generated by `scripts/chart.py sync` from helm/weir. Change helm/weir instead.\n"


def operator_yaml() -> str | None:
    """Render the chart's operator for kustomize, without Helm's labels; None if helm is not installed."""
    command = helm()
    if command is None:
        return None
    settings = ("router.enabled=false", "crds.upgrade=false", "uninstall.wait=false")
    arguments = [part for setting in settings for part in ("--set", setting)]
    rendered = subprocess.run(
        [command, "template", "weir", str(CHART), "--namespace", "weir-system", *arguments],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    documents = [document for document in yaml.safe_load_all(rendered) if document]
    for document in documents:
        for labels in label_maps(document):
            labels.pop("helm.sh/chart", None)
            if labels.get("app.kubernetes.io/managed-by") == "Helm":
                labels["app.kubernetes.io/managed-by"] = "kustomize"
    return BASE_HEADER + yaml.safe_dump_all(documents, sort_keys=False, width=120)


def label_maps(document: Any) -> Iterator[dict[str, str]]:
    if isinstance(document, dict):
        for key, value in document.items():
            if key == "labels" and isinstance(value, dict):
                yield value
            else:
                yield from label_maps(value)
    elif isinstance(document, list):
        for item in document:
            yield from label_maps(item)


def generated() -> dict[Path, str]:
    """Return every generated file and its contents, except k8s/base/operator.yaml."""
    files: dict[Path, str] = {}
    for file in sorted((K8S / "crds").glob("weir.dev_*.yaml")):
        files[CHART / "crds" / file.name] = file.read_text()
    for file in sorted((K8S / "dashboards").glob("*.json")):
        files[CHART / "files/dashboards" / file.name] = file.read_text()
    files[CHART / "files/rbac.yaml"] = (K8S / "rbac/rules.yaml").read_text()
    files[CHART / "files/alerts.yaml"] = (K8S / "alerts/weir.yaml").read_text()
    schema = values_schema()
    files[CHART / "values.schema.json"] = json.dumps(schema, indent=1, ensure_ascii=False) + "\n"
    files[CHART / "README.md"] = readme(schema)
    return files


def orphans(files: dict[Path, str]) -> list[Path]:
    """Return the copies whose source no longer exists."""
    folders = [CHART / "crds", CHART / "files/dashboards"]
    return [file for folder in folders if folder.exists() for file in folder.iterdir() if file not in files]


def sync() -> int:
    files = generated()
    for orphan in orphans(files):
        orphan.unlink()
    for file, content in files.items():
        file.parent.mkdir(parents=True, exist_ok=True)
        if not file.exists() or file.read_text() != content:
            file.write_text(content)
            print(f"wrote {file.relative_to(REPO)}")
    operator = operator_yaml()
    if operator is None:
        print("chart: helm is not installed; k8s/base/operator.yaml is unchanged", file=sys.stderr)
    else:
        (K8S / "base/operator.yaml").write_text(operator)
    return 0


def check() -> list[str]:
    files = generated()
    stale = [file for file, content in files.items() if not file.exists() or file.read_text() != content]
    stale += orphans(files)
    operator = operator_yaml()
    base = K8S / "base/operator.yaml"
    if operator is not None and (not base.exists() or base.read_text() != operator):
        stale.append(base)
    return [str(file.relative_to(REPO)) for file in stale]


def main() -> int:
    if sys.argv[1:] == ["sync"]:
        return sync()
    if sys.argv[1:] == ["check"]:
        stale = check()
        for name in stale:
            print(f"{name} is out of date: run scripts/chart.py sync", file=sys.stderr)
        return 1 if stale else 0
    print(__doc__, file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main())
