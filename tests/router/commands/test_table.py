import pytest

from tests.router.fleet import Fleet
from weir.client.smp import Request
from weir.router.commands.handler import handles
from weir.router.commands.table import HANDLERS, MODULES
from weir.wire.errors import Name, NameErrorTag
from weir.wire.smp import commands as cmd
from weir.wire.smp.replies import ERR


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


async def test_names_are_not_resolved_here(fleet: Fleet) -> None:
    c = await fleet.client(0)
    [answer] = await c.smp.send_many([Request(cmd.RSLV(b"example.simplex"))])
    assert answer == ERR(Name(NameErrorTag.NO_RESOLVER))
