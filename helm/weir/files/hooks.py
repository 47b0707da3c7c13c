"""What Helm cannot do by itself, run by this chart's hook Jobs inside the cluster.

hooks.py crds DIR                         make the cluster's CRDs what DIR's files say, and wait until they are served
hooks.py delete SECONDS KIND/NAME ...     delete these objects and wait until the operator is done with them
"""

from __future__ import annotations

import json
import ssl
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import yaml

ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
SERVER = "https://kubernetes.default.svc"
GROUPS = {"jobs": "batch/v1"}  # of kinds that are not ours
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
CONFLICT, NOT_FOUND = 409, 404


def call(method: str, path: str, body: dict[str, Any] | None = None) -> tuple[int, dict[str, Any]]:
    request = urllib.request.Request(
        SERVER + path,
        method=method,
        data=None if body is None else json.dumps(body).encode(),
        headers={"Authorization": f"Bearer {(ACCOUNT / 'token').read_text()}", "Content-Type": "application/json"},
    )
    context = ssl.create_default_context(cafile=str(ACCOUNT / "ca.crt"))
    try:
        with urllib.request.urlopen(request, context=context, timeout=30) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, json.loads(error.read() or b"{}")


def expect(answer: tuple[int, dict[str, Any]], what: str, *allowed: int) -> tuple[int, dict[str, Any]]:
    status, body = answer
    if status >= 300 and status not in allowed:
        sys.exit(f"{what}: {status} {body.get('message', '')}")
    return answer


def put_crd(wanted: dict[str, Any]) -> None:
    """Replace the whole spec: a field that the new version dropped must not linger."""
    name = wanted["metadata"]["name"]
    for _ in range(10):
        status, found = expect(call("GET", f"{CRDS}/{name}"), name, NOT_FOUND)
        if status == NOT_FOUND:
            status, _body = expect(call("POST", CRDS, wanted), name, CONFLICT)
        else:
            for part in ("labels", "annotations"):
                found["metadata"].setdefault(part, {}).update(wanted["metadata"].get(part) or {})
            found["spec"] = wanted["spec"]
            status, _body = expect(call("PUT", f"{CRDS}/{name}", found), name, CONFLICT)
        if status != CONFLICT:
            return
    sys.exit(f"{name}: somebody else keeps changing it")


def established(name: str) -> bool:
    _, found = expect(call("GET", f"{CRDS}/{name}"), name)
    conditions = found.get("status", {}).get("conditions", [])
    return any(c["type"] == "Established" and c["status"] == "True" for c in conditions)


def crds(directory: Path) -> None:
    names = []
    for file in sorted(directory.glob("*.yaml")):
        for wanted in yaml.safe_load_all(file.read_text()):
            put_crd(wanted)
            names.append(wanted["metadata"]["name"])
    deadline = time.monotonic() + 60
    while waiting := [name for name in names if not established(name)]:
        if time.monotonic() > deadline:
            sys.exit(f"not served: {', '.join(waiting)}")
        time.sleep(0.5)
    print(f"served: {', '.join(names)}")


def delete(seconds: int, objects: list[str]) -> None:
    namespace = (ACCOUNT / "namespace").read_text()
    paths = {}
    for item in objects:
        kind, name = item.split("/")
        paths[item] = f"/apis/{GROUPS.get(kind, 'weir.dev/v1alpha1')}/namespaces/{namespace}/{kind}/{name}"
        # In the background: the operator takes the children away in order, edges before their Redis.
        options = {"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Background"}
        expect(call("DELETE", paths[item], options), item, NOT_FOUND)
    deadline = time.monotonic() + seconds
    while waiting := [
        item for item, path in paths.items() if expect(call("GET", path), item, NOT_FOUND)[0] != NOT_FOUND
    ]:
        if time.monotonic() > deadline:
            sys.exit(
                f"still there: {', '.join(waiting)}. Is an operator running? It finishes deletions; without one,"
                " remove metadata.finalizers from these objects and uninstall with --no-hooks."
            )
        time.sleep(0.5)
    print(f"deleted: {', '.join(objects) or 'nothing'}")


if __name__ == "__main__":
    if sys.argv[1] == "crds":
        crds(Path(sys.argv[2]))
    else:
        delete(int(sys.argv[2]), sys.argv[3:])
