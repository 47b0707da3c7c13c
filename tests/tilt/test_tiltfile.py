"""The Tiltfile, read by a real Starlark interpreter against Tilt's documented API, and what it would do."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.helm.charts import NEEDS_HELM, REPO
from tests.tilt.api import WrongCall
from tests.tilt.interpreter import Tilt

BUILDERS = ("docker", "script")
pytestmark = NEEDS_HELM


@pytest.fixture(scope="module", params=BUILDERS)
def tilt(request: pytest.FixtureRequest) -> Tilt:
    return Tilt(REPO, answers={"docker info": f"{request.param}\n"}).run()


def image(tilt: Tilt) -> dict[str, Any]:
    (build,) = tilt.of("docker_build") + tilt.of("custom_build")
    return build


def names(tilt: Tilt) -> set[str]:
    """Resources Tilt would have."""
    workloads = {
        document["metadata"]["name"]
        for document in tilt.objects()
        if document["kind"] in {"Deployment", "StatefulSet", "Job", *(kind["kind"] for kind in tilt.of("k8s_kind"))}
    }
    made = {call["new_name"] for call in tilt.of("k8s_resource") if "new_name" in call}
    return workloads | made | {call["name"] for call in tilt.of("local_resource")}


def test_the_builder_follows_what_the_machine_has(tilt: Tilt) -> None:
    script = bool(tilt.of("custom_build"))
    assert script != bool(tilt.of("docker_build"))
    if script:
        build = image(tilt)
        assert build["skips_local_docker"] and build["disable_push"]
        assert '"$EXPECTED_REF" testcluster' in build["command"]
    else:
        assert image(tilt)["target"] == "dev"
        assert "AS dev" in (REPO / "Dockerfile").read_text()


def test_paths_exist(tilt: Tilt) -> None:
    build = image(tilt)
    paths = [*build.get("only", []), *build.get("deps", [])]
    for step in build["live_update"]:
        paths += step.get("files", []) + ([step["local_path"]] if step["step"] == "sync" else [])
    # The licence may be named before it is there; everything else must be.
    assert [path for path in paths if not (REPO / path).exists() and path != "LICENSE"] == []


def test_docker_gets_every_file_the_dockerfile_copies() -> None:
    tilt = Tilt(REPO, arguments={"builder": "docker"}).run()
    only = image(tilt)["only"]
    copied = [
        word
        for line in (REPO / "Dockerfile").read_text().splitlines()
        if line.startswith("COPY") and "--from" not in line
        for word in line.split()[1:-1]
    ]
    missing = [
        path
        for path in copied
        if not any(inner.startswith(path.rstrip("*")) or path.startswith(f"{inner}/") for inner in only)
    ]
    assert missing == []


def test_code_goes_where_the_development_image_looks_for_it(tilt: Tilt) -> None:
    steps = image(tilt)["live_update"]
    assert steps[0]["step"] == "fall_back_on"
    targets = {step["local_path"]: step["remote_path"] for step in steps if step["step"] == "sync"}
    assert targets == {
        "services/weir": "/tmp/weir/services/weir",
        "operator/weir_operator": "/tmp/weir/operator/weir_operator",
    }
    assert "PYTHONPATH=/tmp/weir/services:/tmp/weir/operator" in (REPO / "Dockerfile").read_text()
    (command,) = [step["cmd"] for step in steps if step["step"] == "run"]
    assert command == "kill -USR2 1"
    assert "signal.SIGUSR2" in (REPO / "tilt/reload.py").read_text()


def test_the_image_is_what_the_manifests_run(tilt: Tilt) -> None:
    build = image(tilt)
    assert build["match_in_env_vars"]
    (operator,) = [d for d in tilt.objects() if d["kind"] == "Deployment" and d["metadata"]["name"] == "weir-operator"]
    (container,) = operator["spec"]["template"]["spec"]["containers"]
    environment = {item["name"]: item.get("value") for item in container["env"]}
    (router,) = [d for d in tilt.objects() if d["kind"] == "SMPRouter"]
    assert {kind["kind"]: kind["image_json_path"] for kind in tilt.of("k8s_kind")} == {
        "SMPRouter": "{.spec.image}",
        "NTFRouter": "{.spec.image}",
    }
    for reference in (container["image"], environment["WEIR_OPERATOR_IMAGE"], router["spec"]["image"]):
        assert reference.split(":")[0] == build["ref"]


def test_object_selectors_match_one_object_each(tilt: Tilt) -> None:
    objects = [(d["metadata"]["name"], d["kind"].lower()) for d in tilt.objects()]
    assert len(set(objects)) == len(objects)
    claimed = [tuple(selector.split(":")) for call in tilt.of("k8s_resource") for selector in call.get("objects", [])]
    assert len(set(claimed)) == len(claimed)
    assert [selector for selector in claimed if objects.count((selector[0], selector[1])) != 1] == []


def test_resources_and_their_dependencies_exist(tilt: Tilt) -> None:
    known = names(tilt)
    for call in tilt.of("k8s_resource"):
        assert call.get("workload", call.get("new_name")) in known
    for call in tilt.of("k8s_resource") + tilt.of("local_resource"):
        assert set(call.get("resource_deps", [])) <= known
    order = {
        call.get("workload", call.get("new_name")): call.get("resource_deps", []) for call in tilt.of("k8s_resource")
    }
    # CRDs and namespace first, the router when its operator is there.
    assert order == {"cluster": [], "weir-operator": ["cluster"], "weir": ["weir-operator"], "traces": ["cluster"]}


def test_no_helm_hook_runs_as_a_plain_job(tilt: Tilt) -> None:
    assert [
        d["metadata"]["name"] for d in tilt.objects() if "helm.sh/hook" in d["metadata"].get("annotations", {})
    ] == []
    assert {d["kind"] for d in tilt.objects()} >= {"CustomResourceDefinition", "Namespace", "SMPRouter", "Deployment"}


def test_tilt_down_keeps_the_crds_and_waits_for_the_operator(tilt: Tilt) -> None:
    crds = [document for document in tilt.objects() if document["kind"] == "CustomResourceDefinition"]
    assert len(crds) == 3
    assert {crd["metadata"]["annotations"]["tilt.dev/down-policy"] for crd in crds} == {"keep"}
    down = Tilt(REPO, subcommand="down", arguments={"builder": "script"}, answers={"kubectl": ""}).run()
    assert [call["command"] for call in down.of("local")] == [
        "kubectl -n weir-dev delete smpr,ntfr --all --timeout=60s || true"
    ]
    assert tilt.of("local") == [call for call in tilt.of("local") if "docker info" in call["command"]]


def test_ports_differ_on_this_machine(tilt: Tilt) -> None:
    ports = [port["local_port"] for call in tilt.of("k8s_resource") for port in call.get("port_forwards", [])]
    assert sorted(ports) == [5223, 8000, 8080, 9411]


def test_a_notification_router_beside_the_router() -> None:
    tilt = Tilt(REPO, arguments={"builder": "script", "ntf": True}).run()
    (router,) = [d for d in tilt.objects() if d["kind"] == "NTFRouter"]
    assert router["spec"]["image"] == image(tilt)["ref"]
    assert router["spec"]["subscriber"]["allowPrivateServers"] is True
    (resource,) = [call for call in tilt.of("k8s_resource") if call.get("workload") == "weir-ntf"]
    assert resource["extra_pod_selectors"][0]["app.kubernetes.io/instance"] == router["metadata"]["name"] == "weir-ntf"
    assert resource["resource_deps"] == ["weir-operator"]
    ports = [port["local_port"] for call in tilt.of("k8s_resource") for port in call.get("port_forwards", [])]
    assert sorted(ports) == [5223, 5443, 8000, 8001, 8080, 9411]
    assert [d for d in tilt.objects() if "helm.sh/hook" in d["metadata"].get("annotations", {})] == []


def test_edges_send_their_traces_to_the_viewer(tilt: Tilt) -> None:
    (router,) = [d for d in tilt.objects() if d["kind"] == "SMPRouter"]
    assert router["spec"]["telemetry"]["traces"]["endpoint"] == "zipkin+http://traces.weir-dev.svc:9411"
    (service,) = [d for d in tilt.objects() if d["kind"] == "Service" and d["metadata"]["name"] == "traces"]
    assert service["metadata"]["namespace"] == "weir-dev" and service["spec"]["ports"][0]["port"] == 9411


def test_buttons_wait_to_be_pressed(tilt: Tilt) -> None:
    buttons = {call["name"]: call for call in tilt.of("local_resource")}
    assert {"bench", "helm-test", "kill-edge", "kill-redis"} <= set(buttons)
    script = (REPO / "tilt/do.sh").read_text()
    for name, call in buttons.items():
        assert call["trigger_mode"] == "manual" and call["auto_init"] is False
        assert call["cmd"] == f"sh tilt/do.sh {name}"
        assert f"\n{name})\n" in script


def test_the_test_cluster_is_allowed(tilt: Tilt) -> None:
    assert tilt.of("allow_k8s_contexts") == [{"contexts": "testcluster"}]


def test_ci_bears_with_edges_that_wait_for_redis(tilt: Tilt) -> None:
    assert tilt.of("ci_settings") == [{"k8s_grace_period": "3m", "readiness_timeout": "10m", "timeout": "20m"}]


def test_settings() -> None:
    tilt = Tilt(REPO, arguments={"namespace": "mine", "builder": "script", "registry": "reg.example/me"}).run()
    assert {d["metadata"].get("namespace") for d in tilt.objects()} == {"mine", None}
    assert tilt.of("default_registry") == [{"host": "reg.example/me"}]
    with pytest.raises(WrongCall, match="builder is docker or script"):
        Tilt(REPO, arguments={"builder": "kaniko"}).run()
    with pytest.raises(WrongCall, match="nobody defined"):
        Tilt(REPO, arguments={"colour": "red"}).run()


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("k8s_ressource('a')", "not found"),
        ("k8s_resource('a', port_forward=1)", "has no argument port_forward"),
        ("k8s_resource(workload=1)", "workload should be str"),
        ("docker_build('a')", "needs context"),
        ("docker_build('a', '.', live_update=['sync'])", "live_update should be steps"),
        ("k8s_kind('A', 'v1', '{.x}')", "takes 2 arguments by place"),
        ("local_resource('a', 'b', trigger_mode='later')", "trigger_mode should be mode"),
        ("k8s_resource('a', pod_readiness='maybe')", "pod_readiness should be readiness"),
        ("sync('a', 'b', local_path='c')", "given twice"),
        ("os.path.isfile('x')", "isfile"),
    ],
)
def test_the_stand_ins_refuse_what_tilt_would(source: str, reason: str) -> None:
    with pytest.raises(WrongCall, match=re.escape(reason)):
        Tilt(REPO).run(source)


def test_scripts_are_sound_shell() -> None:
    subprocess.run(["sh", "-n", REPO / "tilt/do.sh"], check=True)
    done = subprocess.run(["sh", REPO / "tilt/do.sh"], capture_output=True, text=True, check=False)
    assert done.returncode == 2 and "kill-edge" in done.stderr


def test_every_file_in_tilt_is_used() -> None:
    texts = "".join((REPO / name).read_text() for name in ("Tiltfile", "Dockerfile", "scripts/image.py"))
    for file in Path(REPO / "tilt").iterdir():
        if file.name != "__pycache__":
            assert f"tilt/{file.name}" in texts
