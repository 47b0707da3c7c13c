"""DEL: the subscriber of a deleted queue gets DELD."""

from tests.router.fleet import Fleet
from weir.wire.smp import commands as cmd
from weir.wire.smp.replies import DELD, OK
from weir.wire.versions import VersionRange


async def test_deletion_by_another_connection(fleet: Fleet) -> None:
    r = await fleet.client(0)
    old = await fleet.client(0, versions=VersionRange(6, 9))
    other = await fleet.client(1)
    queue, old_queue = await r.new(), await old.new()
    assert await other.do(cmd.DEL(), queue.rcv_id, queue.rcv_key) == OK()
    event = await r.event()
    assert (event.entity_id, event.reply) == (queue.rcv_id, DELD())
    assert await other.do(cmd.DEL(), old_queue.rcv_id, old_queue.rcv_key) == OK()
    event = await old.event()
    assert event.entity_id == old_queue.rcv_id and type(event.reply).__name__ == "END", "before version 10"
    await other.silence()
