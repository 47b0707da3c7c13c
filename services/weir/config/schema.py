"""The settings of one program: its sections, and how a file and the environment fill them.

A `Schema` wraps a dataclass whose fields are sections; each section is a dataclass whose fields are settings. A setting
`key` of a section is `[section] key` in TOML and `PREFIX_SECTION_KEY` in the environment. The environment wins over the
file, and the file wins over the defaults. `PREFIX_SECTION_KEY_FILE` names a file that holds the value (for secrets),
unless `key_file` is a setting of its own: then the program itself reads the file.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import Field, dataclass, field, fields
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Generic, TypeVar

from weir.config.file import IniNames, Problem, Raw, read_config_file

C = TypeVar("C")


class ConfigError(Exception):
    """Every problem of a configuration at once, each with its file and line."""

    def __init__(self, problems: list[Problem]) -> None:
        super().__init__("\n".join(str(problem) for problem in problems))
        self.problems = problems


@dataclass
class Places:
    """The file and line of each setting, for error messages of rules that span several settings."""

    file: Path | None
    raws: dict[tuple[str, str], Raw] = field(default_factory=dict)

    def problem(self, section: str, key: str, text: str) -> Problem:
        raw = self.raws.get((section, key))
        return raw.problem(text) if raw else Problem(str(self.file or "defaults"), 0, f"[{section}] {key}: {text}")


@dataclass(frozen=True)
class Schema(Generic[C]):
    """The settings of one program.

    `check` returns the problems of settings that contradict each other. `resolve` makes relative paths relative to the
    file's directory. `other_variables` are environment variables that have the prefix of a setting but other uses.
    `other_names` are further names of environment variables that set a setting; PREFIX_SECTION_KEY wins over them.
    """

    config: type[C]
    prefix: str
    ini: IniNames
    check: Callable[[C, Places], list[Problem]]
    resolve: Callable[[C, Path], C]
    other_variables: frozenset[str] = frozenset()
    other_names: Mapping[str, tuple[str, str]] = field(default_factory=dict)

    def sections(self) -> Iterator[tuple[str, type[Any]]]:
        """Yield (name, dataclass) of every section, in the order of the documentation."""
        for section in fields(self.config):  # type: ignore[arg-type]
            yield section.name, section.default_factory  # type: ignore[misc]

    def settings(self) -> Iterator[tuple[str, Field[Any]]]:
        """Yield (section, setting) for every setting."""
        for name, cls in self.sections():
            for item in fields(cls):
                yield name, item

    def find(self, section: str, key: str) -> Field[Any] | None:
        return next((item for name, item in self.settings() if (name, item.name) == (section, key)), None)

    def environment_name(self, section: str, key: str) -> str:
        return f"{self.prefix}_{section}_{key}".upper()

    def load(self, path: Path | None = None, environ: Mapping[str, str] | None = None) -> C:
        """Read the defaults, the file, then the environment; raises ConfigError with every problem found."""
        problems: list[Problem] = []
        raws = read_config_file(path, self.ini, problems) if path is not None else []
        raws += self._environment(os.environ if environ is None else environ, problems)
        config = self.build(raws, problems, path)
        return self.resolve(config, path.parent if path is not None else Path())

    def given(self, path: Path | None, environ: Mapping[str, str] | None = None) -> set[tuple[str, str]]:
        """Return (section, key) of every setting that the file or the environment names, valid or not."""
        raws = read_config_file(path, self.ini, []) if path is not None else []
        raws += self._environment(os.environ if environ is None else environ, [])
        return {(raw.section, raw.key) for raw in raws}

    def build(self, raws: list[Raw], problems: list[Problem], path: Path | None) -> C:
        """Make a configuration of raw settings. A later setting replaces an earlier one of the same name.

        Raises ConfigError if `problems` has entries already, or if the raw settings add any.
        """
        values: dict[str, dict[str, Any]] = {name: {} for name, _ in self.sections()}
        places = Places(path)
        known = {name: {item.name: item for item in fields(cls)} for name, cls in self.sections()}
        for raw in raws:
            if raw.section not in known:
                problems.append(raw.problem(f"unknown section [{raw.shown_section}]"))
            elif not raw.key:
                continue  # an empty section
            elif raw.key not in known[raw.section]:
                names = ", ".join(known[raw.section])
                problems.append(raw.problem(f"unknown key {raw.shown_key} in [{raw.shown_section}] (known: {names})"))
            else:
                try:
                    values[raw.section][raw.key] = known[raw.section][raw.key].metadata["kind"].read(raw.value)
                    places.raws[raw.section, raw.key] = raw
                except ValueError as error:
                    problems.append(raw.problem(f"{raw.shown_key}: {error}"))
        config = self.config(**{name: cls(**values[name]) for name, cls in self.sections()})
        problems += self.check(config, places)
        if problems:
            raise ConfigError(problems)
        return config

    def unknown_in_environment(self, environ: Mapping[str, str]) -> list[Problem]:
        """Find variables that have the prefix of a setting but name no setting.

        `load` ignores such variables, because another program may have set them (Kubernetes does so for Services).
        """
        names = {self.environment_name(section, item.name) for section, item in self.settings()}
        prefixes = tuple(self.environment_name(section, "") for section, _ in self.sections())
        problems = []
        for name in sorted(environ):
            if name.startswith(prefixes) and name.removesuffix("_FILE") not in names | self.other_variables:
                close = get_close_matches(name, names, 1)
                hint = f" (did you mean {close[0]}?)" if close else ""
                problems.append(Problem("environment", 0, f"unknown setting {name}{hint}"))
        return problems

    def _environment(self, environ: Mapping[str, str], problems: list[Problem]) -> list[Raw]:
        raws = [
            Raw(section, key, environ[name], "environment", 0, shown_key=name)
            for name, (section, key) in self.other_names.items()
            if name in environ
        ]
        for section, item in self.settings():
            name = self.environment_name(section, item.name)
            if name in environ:
                raws.append(Raw(section, item.name, environ[name], "environment", 0, shown_key=name))
            elif name + "_FILE" in environ and self.find(section, item.name + "_file") is None:
                try:
                    text = Path(environ[name + "_FILE"]).read_text("utf-8").strip()
                    raws.append(Raw(section, item.name, text, "environment", 0, shown_key=name))
                except OSError as error:
                    problems.append(Problem("environment", 0, f"{name}_FILE: {error.strerror}"))
        return raws
