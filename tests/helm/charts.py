"""helm from Python: render the chart and read the manifests."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
import yaml

REPO = Path(__file__).resolve().parents[2]
CHART = REPO / "helm/weir"
NAMESPACE = "chat"
RELEASE = "weir"
Document = dict[str, Any]

NEEDS_HELM = pytest.mark.all("helm is built with the test cluster's other binaries, which takes minutes")
_CACHED = Path(os.environ.get("WEIR_CACHE", Path.home() / ".cache/weir")) / "cluster/bin"


def tool(name: str) -> str:
    """The test cluster's own binary, or one on PATH; without either the test is skipped in one line."""
    if (_CACHED / name).exists():
        return str(_CACHED / name)
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"needs {name}: tests/cluster/build.sh makes it")
    return found


def helm(*arguments: str | Path, check: bool = True, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [tool("helm"), *(str(part) for part in arguments)], capture_output=True, text=True, check=False, input=stdin
    )
    if check and done.returncode:
        raise AssertionError(f"helm {' '.join(map(str, arguments))}: {done.stderr}")
    return done


def template(values: Document, *arguments: str, check: bool = True) -> subprocess.CompletedProcess[str]:
    text = yaml.safe_dump(values)
    options = ("--namespace", NAMESPACE, "--values", "-", *arguments)
    return helm("template", RELEASE, CHART, *options, check=check, stdin=text)


def render(values: Document | None = None, apis: Iterable[str] = (), *arguments: str) -> dict[str, Document]:
    """Every rendered document, by "Kind/name"."""
    options = [part for api in apis for part in ("--api-versions", api)]
    text = template(values or {}, *options, *arguments).stdout
    documents = [document for document in yaml.safe_load_all(text) if document]
    places = {(d["kind"], d["metadata"].get("namespace"), d["metadata"]["name"]) for d in documents}
    assert len(places) == len(documents), "two documents of one kind and name"
    return {f"{document['kind']}/{document['metadata']['name']}": document for document in documents}


def at(document: Any, path: str) -> Any:
    """document.a.b.0, with `[name=x]` for a list's item and \\. for a dot inside a key; None where there is nothing."""
    for part in path.replace("\\.", "\0").split("."):
        key = part.replace("\0", ".")
        if isinstance(document, list):
            if key.startswith("["):
                name, value = key.strip("[]").split("=", 1)
                document = next((item for item in document if item.get(name) == value), None)
            else:
                document = document[int(key)] if int(key) < len(document) else None
        elif isinstance(document, dict):
            document = document.get(key)
        else:
            return None
    return document


def nested(path: str, value: Any) -> Document:
    """{"a": {"b": value}} for "a.b"; a trailing [] makes a list of one."""
    made = value
    for part in reversed(path.split(".")):
        made = {part[:-2]: [made]} if part.endswith("[]") else {part: made}
    assert isinstance(made, dict)
    return made
