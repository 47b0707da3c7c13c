"""The keys that every router has, with and without a prefix."""

from weir.redis.partitions import Partitions
from weir.runtime.state.keys import CommonKeys


def test_without_a_prefix() -> None:
    keys = CommonKeys(Partitions())
    assert (keys.placement, keys.stats, keys.tasks) == (b"{weir}:placement", b"{weir}:stats", b"weir:tasks")
    assert (keys.lease(7, b"x"), keys.inbox(7, b"x")) == (b"{7}:e:x", b"{7}:i:x")
    assert (keys.channel(b"x"), keys.shard_channel(7, b"x"), keys.answers(b"x")) == (
        b"weir:poke:x",
        b"{7}:poke:x",
        b"weir:answers:x",
    )


def test_with_a_prefix() -> None:
    keys = CommonKeys(Partitions("ntf"))
    assert (keys.placement, keys.stats, keys.tasks) == (b"{ntf}:placement", b"{ntf}:stats", b"ntf:tasks")
    assert (keys.lease(7, b"x"), keys.inbox(7, b"x")) == (b"{ntf.7}:e:x", b"{ntf.7}:i:x")
    assert (keys.channel(b"x"), keys.shard_channel(7, b"x"), keys.answers(b"x")) == (
        b"ntf:poke:x",
        b"{ntf.7}:poke:x",
        b"ntf:answers:x",
    )
