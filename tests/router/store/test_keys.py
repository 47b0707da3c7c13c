"""Placement and keys."""

from pathlib import Path

import pytest

from tests.router.store.conftest import OpenEdge
from tests.router.store.default_keys import keys
from tests.router.store.harness import open_edge
from tests.support.redis import RedisServer
from weir.redis.errors import StoreError
from weir.router.store import keys as key_module
from weir.router.store.keys import Placement


def test_ids_are_drawn_into_one_partition() -> None:
    placement = Placement(bytes(32))
    for ntf in (False, True):
        rcv_id, snd_id, ntf_id = placement.new_ids(None, ntf)
        assert (ntf_id is not None) == ntf
        assert len({placement.partition(i) for i in (rcv_id, snd_id, ntf_id) if i}) == 1
        assert {len(i) for i in (rcv_id, snd_id, ntf_id) if i} == {24}


def test_every_key_carries_its_tag() -> None:
    made = [
        keys.queue(7, b"x"),
        keys.messages(7, b"x"),
        keys.body(7, b"x"),
        keys.sender(7, b"x"),
        keys.notifier(7, b"x"),
        keys.notifications(7, b"x"),
        keys.link(7, b"x"),
        keys.link_data(7, b"x"),
        keys.creation(7, b"x"),
        keys.counters(7),
        keys.service(7, b"x"),
        keys.service_queues(7, b"x"),
        keys.service_ready(7, b"x"),
        keys.lease(7, b"x"),
        keys.inbox(7, b"x"),
        keys.shard_channel(7, b"x"),
    ]
    assert all(key.startswith(b"{7}:") for key in made)
    assert len(set(made)) == len(made)


async def test_another_placement_key_is_refused(open_any: OpenEdge, any_redis: RedisServer) -> None:
    await open_any()
    with pytest.raises(StoreError) as caught:
        await open_edge(any_redis.url, bytes(32))
    assert str(caught.value) == "the placement key is not the key that the data in this Redis was placed with"


def test_keys_are_built_in_one_module() -> None:
    """No other module of the store writes a hash tag, but the forms of the hot calls."""
    folder = Path(key_module.__file__).parent
    offenders = [path.name for path in folder.glob("*.py") if "tags[" in path.read_text() and path.name != "keys.py"]
    assert offenders == []
