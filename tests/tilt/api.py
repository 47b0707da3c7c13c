"""Tilt's documented built-ins: names, parameters, kinds of values. A Tiltfile may call these, and only so.

Each entry: the function's name, then its parameters in order as `name:kind`, with `?` after those that may be left
out and `*` before those that only go by name. From the Tiltfile API reference of Tilt 0.37.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

FUNCTIONS = """
allow_k8s_contexts contexts:strs
analytics_settings enable:bool
blob contents:str
ci_settings k8s_grace_period:str? timeout:str? readiness_timeout:str?
custom_build ref:str command:command deps:strs tag:str? disable_push:bool? skips_local_docker:bool? live_update:steps?
    match_in_env_vars:bool? ignore:strs? entrypoint:command? command_bat_val:str? outputs_image_ref_to:str?
    command_bat:command? image_deps:list? env:dict? dir:str?
dc_resource name:str trigger_mode:mode? resource_deps:list? links:any? labels:strs? auto_init:bool? project_name:str?
    new_name:str? infer_links:bool?
decode_json json:str
decode_yaml yaml:str
decode_yaml_stream yaml:str
default_registry host:str host_from_cluster:str? single_name:str?
disable_snapshots
docker_build ref:str context:str build_args:dict? dockerfile:str? dockerfile_contents:str? live_update:steps?
    match_in_env_vars:bool? ignore:strs? only:strs? entrypoint:command? target:str? ssh:strs? network:str? secret:strs?
    extra_tag:strs? container_args:list? cache_from:strs? pull:bool? platform:str? extra_hosts:strs?
docker_compose configPaths:any env_file:str? project_name:str? profiles:strs? wait:bool?
docker_prune_settings disable:bool? max_age_mins:int? num_builds:int? interval_hrs:int? keep_recent:int?
enable_feature feature_name:str
encode_json obj:any
encode_yaml obj:any
encode_yaml_stream objs:list
exec_action command:list
exit code:any
fail msg:str
fall_back_on files:strs
filter_yaml yaml:any labels:dict? name:str? namespace:str? kind:str? api_version:str?
helm pathToChartDir:str name:str? namespace:str? values:strs? set:strs? kube_version:str? skip_crds:bool?
http_get_action port:int host:str? scheme:str? path:str?
include path:str
initial_sync
k8s_context
k8s_custom_deploy name:str apply_cmd:command delete_cmd:command deps:strs image_selector:str? live_update:steps?
    apply_dir:str? apply_env:dict? apply_cmd_bat:command? delete_dir:str? delete_env:dict? delete_cmd_bat:command?
    container_selector:str? image_deps:list?
k8s_kind kind:str api_version:str? *image_json_path:strs? *image_object_json_path:dict? *pod_readiness:readiness?
k8s_namespace
k8s_resource workload:str? new_name:str? port_forwards:ports? extra_pod_selectors:selectors? trigger_mode:mode?
    resource_deps:list? objects:list? auto_init:bool? pod_readiness:readiness? links:any? labels:strs?
    discovery_strategy:discovery?
k8s_yaml yaml:strs allow_duplicates:bool?
kustomize pathToDir:str kustomize_bin:str? flags:list?
link url:str name:str?
listdir directory:str recursive:bool?
load_dynamic path:str
local command:command quiet:bool? command_bat:command? echo_off:bool? env:dict? dir:str? stdin:str?
local_resource name:str cmd:command? deps:strs? trigger_mode:mode? resource_deps:list? ignore:strs? auto_init:bool?
    serve_cmd:command? cmd_bat:command? serve_cmd_bat:command? allow_parallel:bool? links:any? labels:strs? env:dict?
    serve_env:dict? readiness_probe:any? dir:str? serve_dir:str?
port_forward local_port:int container_port:int? name:str? link_path:str? host:str?
probe initial_delay_secs:int? timeout_secs:int? period_secs:int? success_threshold:int? failure_threshold:int?
    exec:any? http_get:any? tcp_socket:any?
read_file file_path:str default:str?
read_json path:str default:any?
read_yaml path:str default:any?
read_yaml_stream path:str default:any?
restart_container
run cmd:command trigger:strs? echo_off:bool?
secret_settings disable_scrub:bool?
set_team team_id:str
sync local_path:str remote_path:str
tcp_socket_action port:int host:str?
trigger_mode trigger_mode:mode
update_settings max_parallel_updates:int? k8s_upsert_timeout_secs:int? suppress_unused_image_warnings:strs?
    k8s_server_side_apply:str?
version_settings check_updates:bool? constraint:str?
warn msg:str
watch_file file_path:str
watch_settings ignore:strs
workload_to_resource_function fn:any
config.clear_enabled_resources
config.define_bool name:str args:bool? usage:str?
config.define_string name:str args:bool? usage:str?
config.define_string_list name:str args:bool? usage:str?
config.parse
config.set_enabled_resources resources:list
os.getcwd
os.getenv key:str default:any?
os.putenv key:str value:str
os.unsetenv key:str
os.path.abspath path:str
os.path.basename path:str
os.path.dirname path:str
os.path.exists path:str
os.path.join path:str paths:rest
os.path.realpath path:str
os.path.relpath targpath:str basepath:str?
shlex.quote s:str
"""

CONSTANTS = {"TRIGGER_MODE_AUTO": "auto", "TRIGGER_MODE_MANUAL": "manual"}


def _strings(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def _step(value: Any) -> bool:
    return isinstance(value, dict) and value.get("step") in {
        "fall_back_on",
        "sync",
        "run",
        "restart_container",
        "initial_sync",
    }


def _port(value: Any) -> bool:
    return isinstance(value, str | int) or (isinstance(value, dict) and "local_port" in value)


def _selector(value: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(item, str) for pair in value.items() for item in pair)


KINDS: dict[str, Callable[[Any], bool]] = {
    "any": lambda value: True,
    "rest": lambda value: isinstance(value, str),
    "str": lambda value: isinstance(value, str),
    "int": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "bool": lambda value: isinstance(value, bool),
    "dict": lambda value: isinstance(value, dict),
    "list": lambda value: isinstance(value, list),
    "strs": lambda value: isinstance(value, str) or _strings(value),
    "command": lambda value: isinstance(value, str) or _strings(value),
    "mode": lambda value: value in CONSTANTS.values(),
    "readiness": lambda value: value in {"", "ignore", "wait"},
    "discovery": lambda value: value in {"", "default", "selectors-only"},
    "steps": lambda value: isinstance(value, list) and all(_step(item) for item in value),
    "ports": lambda value: _port(value) or (isinstance(value, list) and all(_port(item) for item in value)),
    "selectors": lambda value: _selector(value) or (isinstance(value, list) and all(_selector(item) for item in value)),
}


class Parameter(NamedTuple):
    name: str
    kind: str
    optional: bool
    by_name_only: bool


def parse_functions() -> dict[str, list[Parameter]]:
    functions: dict[str, list[Parameter]] = {}
    for line in FUNCTIONS.strip().splitlines():
        words = line.split()
        if not line.startswith(" "):
            name = words.pop(0)
            functions[name] = []
        for word in words:
            parameter, kind = word.split(":")
            functions[name].append(
                Parameter(parameter.lstrip("*"), kind.rstrip("?"), kind.endswith("?"), parameter.startswith("*"))
            )
    return functions


class WrongCall(Exception):
    """A call that Tilt would refuse."""


def bind(function: str, parameters: list[Parameter], args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    """The arguments by name, as Tilt would take them, or WrongCall with the reason."""
    if parameters and parameters[-1].kind == "rest":
        rest, args = args[len(parameters) - 1 :], args[: len(parameters) - 1]
        if not all(isinstance(item, str) for item in rest):
            raise WrongCall(f"{function}: every path is a string")
        return bind(function, parameters[:-1], args, kwargs) | {parameters[-1].name: list(rest)}
    positional = [parameter for parameter in parameters if not parameter.by_name_only]
    if len(args) > len(positional):
        raise WrongCall(f"{function}: takes {len(positional)} arguments by place, got {len(args)}")
    given = {parameter.name: value for parameter, value in zip(positional, args, strict=False)}
    known = {parameter.name: parameter for parameter in parameters}
    for name, value in kwargs.items():
        if name not in known:
            raise WrongCall(f"{function}: has no argument {name}")
        if name in given:
            raise WrongCall(f"{function}: {name} is given twice")
        given[name] = value
    for parameter in parameters:
        if parameter.name not in given:
            if not parameter.optional:
                raise WrongCall(f"{function}: needs {parameter.name}")
        elif not (parameter.optional and given[parameter.name] is None) and not KINDS[parameter.kind](
            given[parameter.name]
        ):
            raise WrongCall(f"{function}: {parameter.name} should be {parameter.kind}, got {given[parameter.name]!r}")
    return given
