"""A rolling upgrade: edges of this version and of the next one, whose scripts differ, serve the same queues."""

import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.router.fleet import Fleet, Peer, Queue, body_of, sok
from tests.router.service import credentials, subs, until_alls
from weir.router.config import RouterConfig
from weir.router.store import store
from weir.router.store.core import LUA
from weir.wire.smp import commands as cmd
from weir.wire.smp import ids_hash
from weir.wire.smp.replies import END, MSG, OK, SOKS


@pytest.fixture
async def fleet(config: RouterConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Fleet]:
    """The first edge has the scripts of this version, the second one those of the next."""
    fleet = Fleet(config)
    await fleet.add()
    following = tmp_path / "lua"
    shutil.copytree(str(LUA[0]), following)
    for script in following.glob("*.lua"):
        script.write_text(f"{script.read_text().rstrip()}\n-- The next version.\n")
    monkeypatch.setattr(store, "LUA", (following, *LUA[1:]))
    await fleet.add()
    monkeypatch.undo()
    ours, next_ = (edge.store.topology.scripts.shas for edge in fleet.edges)
    assert ours.keys() == next_.keys() and ours["send"] != next_["send"]
    yield fleet
    await fleet.close()


async def exchange(s: Peer, r: Peer, queue: Queue) -> None:
    assert [await s.send(queue, body) for body in (b"1", b"2")] == [OK(), OK()]
    msg_id, _ = await r.msg(queue)
    reply = await r.ack(queue, msg_id)
    assert body_of(queue, reply) == b"2"
    assert isinstance(reply, MSG) and await r.ack(queue, reply.msg_id) == OK()


async def test_queues_are_served_by_both(fleet: Fleet) -> None:
    ours, next_ = await fleet.client(0), await fleet.client(1)
    queue = await ours.new(secure=True)
    await exchange(next_, ours, queue)
    assert await next_.sub(queue) == sok(next_)
    assert (await ours.event()).reply == END()
    await exchange(ours, next_, queue)
    assert await next_.do(cmd.DEL(), queue.rcv_id, queue.rcv_key) == OK()


async def test_services_move_between_them(fleet: Fleet) -> None:
    service = credentials()
    s = await fleet.client(0)
    one = await fleet.client(0, service=service)
    queue = await one.new(secure=True)
    hash_ = ids_hash.of_id(queue.rcv_id)
    for edge in (1, 0):
        assert await s.send(queue, b"%d" % edge) == OK()
        one = await fleet.client(edge, service=service)
        assert await subs(one, 1, hash_) == SOKS(1, hash_)
        ((msg_id, _),) = (await until_alls(one, [queue])).values()
        while isinstance(reply := await one.ack(queue, msg_id), MSG):
            msg_id = reply.msg_id
        assert reply == OK()


async def test_the_edges_find_their_scripts_again(fleet: Fleet) -> None:
    """Redis forgets all scripts, e.g. because it was restarted: each edge loads its own."""
    ours, next_ = await fleet.client(0), await fleet.client(1)
    queue = await ours.new(secure=True)
    await fleet[0].store.core.ask(0, b"SCRIPT", b"FLUSH")
    await exchange(next_, ours, queue)
    await exchange(ours, ours, queue)
