"""RSLV: names are not resolved here."""

from tests.router.fleet import Fleet, err
from weir.wire.errors import Name, NameErrorTag
from weir.wire.smp import commands as cmd


async def test_a_router_without_a_resolver(fleet: Fleet) -> None:
    peer = await fleet.client(0)
    assert await peer.do(cmd.RSLV(b"example.simplex")) == err(Name(NameErrorTag.NO_RESOLVER))
