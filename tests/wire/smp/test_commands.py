"""Every command is declared, and the declarations agree with what others say about the commands."""

import re
from pathlib import Path
from typing import get_args

import pytest
from hypothesis import Phase, find, settings

from tests.wire import strategies
from weir.wire.smp import commands as c
from weir.wire.versions import NAMES, SMP_RANGE

_PROTOCOL = (Path(__file__).parents[3] / "docs" / "protocol.md").read_text()
_DECLARED = list(c.DECLARATIONS.values())


def test_every_command_is_declared() -> None:
    assert set(c.DECLARATIONS) == set(get_args(c.Command))
    assert len({declared.tag for declared in _DECLARED}) == len(_DECLARED)


@pytest.mark.parametrize("declared", _DECLARED, ids=[declared.tag.decode() for declared in _DECLARED])
def test_the_documentation_names_the_command_and_its_first_version(declared: c.CommandDeclaration) -> None:
    tag = declared.tag.decode()
    versions = {
        int(row[1]): set(re.findall(r"\b[A-Z]{3,5}\b", row[2]))
        for row in re.finditer(r"^\| (\d+) \| (.*?) \|", _PROTOCOL, re.M)
    }
    if declared.first_version <= SMP_RANGE.max:
        assert tag in versions[declared.first_version]
        assert not [version for version in versions if version < declared.first_version and tag in versions[version]]
    else:
        assert declared.first_version == NAMES
    commands = re.findall(r"^\| ((?:[A-Z]{3,5}(?:, )?)+) \|", _PROTOCOL, re.M)
    assert [row for row in commands if tag in row.split(", ")]


@pytest.mark.parametrize("kind", c.DECLARATIONS, ids=lambda kind: kind.__name__)
def test_the_strategy_makes_the_command(kind: type[c.Command]) -> None:
    without_shrinking = settings(phases=[Phase.generate], max_examples=2000, database=None)
    assert find(strategies.commands, lambda command: isinstance(command, kind), settings=without_shrinking)


def test_roles_of_services() -> None:
    roles = {declared.tag: declared.role for declared in _DECLARED if declared.role is not c.ServiceRole.MESSAGING}
    notifier = c.ServiceRole.NOTIFIER
    assert roles == {b"PING": None, b"NSUB": notifier, b"NSUBS": notifier, b"RFWD": c.ServiceRole.PROXY}


def test_commands_that_a_service_signs() -> None:
    assert {declared.tag for declared in _DECLARED if declared.service_signed} == {b"NEW", b"SUB", b"NSUB"}
