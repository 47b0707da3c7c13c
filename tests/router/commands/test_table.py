from pathlib import Path

import pytest

from weir.router.commands.handler import handles
from weir.router.commands.table import HANDLERS, MODULES
from weir.wire.smp import commands as cmd


def test_every_command_has_a_handler() -> None:
    assert set(HANDLERS) == set(cmd.DECLARATIONS)


def test_the_story_of_a_command_is_where_its_name_says() -> None:
    """SKEY, LKEY and NSUBS share the module of their twins."""
    twins = {cmd.SKEY: "key", cmd.LKEY: "lget", cmd.NSUBS: "subs", cmd.DEL: "del_"}
    modules = {kind: handler.__module__.rpartition(".")[2] for kind, handler in HANDLERS.items()}
    assert modules == {kind: twins.get(kind, kind.__name__.lower()) for kind in cmd.DECLARATIONS}
    assert {module.__name__.rpartition(".")[2] for module in MODULES} == set(modules.values())


def test_a_command_has_one_handler_and_a_declaration() -> None:
    for kind in (cmd.SEND, int):
        with pytest.raises(TypeError):
            handles(kind)(HANDLERS[cmd.SEND])  # type: ignore[arg-type]


def test_the_tests_of_a_command_are_in_the_file_of_its_name() -> None:
    tested = {path.stem.removeprefix("test_") for path in Path(__file__).parent.glob("test_*.py")}
    modules = {module.__name__.rpartition(".")[2].rstrip("_") for module in MODULES}
    assert modules - tested == set()
