from typing import get_args

from tests.router.fleet import Fleet
from weir.client.smp import Request
from weir.router.handlers import OPS
from weir.wire import commands as cmd
from weir.wire.errors import Name, NameErrorTag
from weir.wire.replies import ERR


def test_every_command_has_a_handler() -> None:
    assert {*OPS, cmd.PING, cmd.RSLV} == set(get_args(cmd.Command))


async def test_names_are_not_resolved_here(fleet: Fleet) -> None:
    c = await fleet.client(0)
    [answer] = await c.smp.send_many([Request(cmd.RSLV(b"example.simplex"))])
    assert answer == ERR(Name(NameErrorTag.NO_RESOLVER))
