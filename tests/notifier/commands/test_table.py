"""The story of a command is where its name says."""

from weir.notifier.commands.table import HANDLERS, MODULES
from weir.wire.ntf.types import DECLARATIONS


def test_every_declared_command_has_a_handler_in_the_module_of_its_name() -> None:
    assert HANDLERS.keys() == DECLARATIONS.keys()
    for kind, handler in HANDLERS.items():
        assert handler.__module__ == f"weir.notifier.commands.{kind.__name__.lower()}"
    assert {module.__name__ for module in MODULES} == {handler.__module__ for handler in HANDLERS.values()}
