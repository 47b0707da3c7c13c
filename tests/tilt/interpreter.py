"""Runs a Tiltfile in a real Starlark interpreter: what it registers is recorded, what it asks the machine is asked."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import starlark
import yaml

from tests.helm.charts import tool
from tests.tilt.api import CONSTANTS, WrongCall, bind, parse_functions

STEPS = {"fall_back_on", "sync", "run", "restart_container", "initial_sync"}


@dataclass
class Tilt:
    """The things that Tilt knows after it has read the Tiltfile."""

    directory: Path
    context: str = "testcluster"
    subcommand: str = "up"
    arguments: dict[str, Any] = field(default_factory=dict)
    answers: dict[str, str] = field(default_factory=dict)  # instead of running a `local` command that contains the key
    calls: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    environment: dict[str, str] = field(default_factory=lambda: dict(os.environ))
    settings: dict[str, str] = field(default_factory=dict)

    def of(self, function: str) -> list[dict[str, Any]]:
        return [arguments for name, arguments in self.calls if name == function]

    def objects(self) -> list[dict[str, Any]]:
        texts: list[str] = []
        for call in self.of("k8s_yaml"):
            given = call["yaml"]
            for item in [given] if isinstance(given, str) else given:
                path = self.directory / item if "\n" not in item else None
                texts.append(path.read_text() if path is not None and path.exists() else item)
        return [document for text in texts for document in yaml.safe_load_all(text) if document]

    # ---- built-ins that answer something

    def _helm(self, **given: Any) -> str:
        values = given.get("values", [])
        settings = given.get("set", [])
        command = [
            tool("helm"),
            "template",
            given.get("name") or "chart",
            str(self.directory / given["pathToChartDir"]),
        ]
        command += ["--namespace", given["namespace"]] if given.get("namespace") else []
        command += [] if given.get("skip_crds") else ["--include-crds"]
        for file in [values] if isinstance(values, str) else values:
            command += ["--values", str(self.directory / file)]
        for setting in [settings] if isinstance(settings, str) else settings:
            command += ["--set", setting]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise WrongCall(f"helm: {done.stderr}")
        # Tilt leaves a chart's tests out.
        kept = [part for part in done.stdout.split("---\n") if "/tests/" not in part.split("\n", 1)[0]]
        return "---\n".join(kept)

    def _local(self, **given: Any) -> str:
        command = given["command"]
        for part, answer in self.answers.items():
            if part in str(command):
                return answer
        done = subprocess.run(
            command, shell=isinstance(command, str), cwd=self.directory, capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise WrongCall(f"local: {command}: {done.stderr}")
        return done.stdout

    def answer(self, function: str, given: dict[str, Any]) -> Any:
        if function in STEPS:
            return {"step": function, **given}
        match function:
            case "helm":
                return self._helm(**given)
            case "local":
                return self._local(**given)
            case "k8s_context":
                return self.context
            case "listdir":
                return sorted(str(path) for path in (self.directory / given["directory"]).iterdir() if path.is_file())
            case "read_yaml":
                return yaml.safe_load((self.directory / given["path"]).read_text())
            case "os.path.basename":
                return os.path.basename(given["path"])
            case "read_file":
                return (self.directory / given["file_path"]).read_text()
            case "blob":
                return given["contents"]
            case "encode_yaml":
                return yaml.safe_dump(given["obj"])
            case "encode_json":
                return json.dumps(given["obj"])
            case "port_forward" | "link" | "probe":
                return given
            case "shlex.quote":
                return shlex.quote(given["s"])
            case "os.getenv":
                return self.environment.get(given["key"], given.get("default"))
            case "os.putenv":
                self.environment[given["key"]] = given["value"]
            case "os.path.exists":
                return (self.directory / given["path"]).exists()
            case "os.path.join":
                return os.path.join(given["path"], *given["paths"])
            case "config.define_string" | "config.define_bool" | "config.define_string_list":
                self.settings[given["name"]] = function.rsplit("_", 1)[1]
            case "config.parse":
                unknown = set(self.arguments) - set(self.settings)
                if unknown:
                    raise WrongCall(f"config.parse: nobody defined {sorted(unknown)}")
                return self.arguments
            case "fail" | "exit":
                raise WrongCall(f"{function}: {given}")
        return None

    def run(self, source: str | None = None) -> Tilt:
        text = source if source is not None else (self.directory / "Tiltfile").read_text()
        module = starlark.Module()
        tree: dict[str, Any] = {}
        problems: list[Exception] = []

        def stand_in(function: str, parameters: Any) -> Any:
            def call(*args: Any, **kwargs: Any) -> Any:
                try:
                    given = bind(function, parameters, args, kwargs)
                    self.calls.append((function, given))
                    return self.answer(function, given)
                except Exception as problem:
                    problems.append(problem)
                    raise

            return call

        for function, parameters in parse_functions().items():
            flat = "_builtin_" + function.replace(".", "_") if "." in function else function
            module.add_callable(flat, stand_in(function, parameters))
            if "." in function:
                *parents, leaf = function.split(".")
                place = tree
                for parent in parents:
                    place = place.setdefault(parent, {})
                place[leaf] = flat
        for name, value in CONSTANTS.items():
            module[name] = value
        module["_tilt_subcommand"] = self.subcommand
        tree["config"]["tilt_subcommand"] = "_tilt_subcommand"

        def struct(of: dict[str, Any]) -> str:
            parts = (f"{name} = {struct(part) if isinstance(part, dict) else part}" for name, part in of.items())
            return f"struct({', '.join(parts)})"

        library = starlark.Globals.extended_by([starlark.LibraryExtension.StructType, starlark.LibraryExtension.Print])
        dialect = starlark.Dialect.extended()
        prelude = "\n".join(f"{name} = {struct(part)}" for name, part in tree.items())
        try:
            starlark.eval(module, starlark.parse("prelude", prelude, dialect), library)
            starlark.eval(module, starlark.parse("Tiltfile", text, dialect), library)
        except starlark.StarlarkError as error:
            raise problems[0] if problems else WrongCall(str(error)) from None
        return self
