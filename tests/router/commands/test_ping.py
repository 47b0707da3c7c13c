"""PING: answered at once, without Redis, and in its order among other commands."""

import os

from tests.redis.proxy import Proxy
from tests.router.fleet import Fleet, err
from weir.client.smp import Request
from weir.crypto.keys import generate
from weir.wire.errors import CommandError, Simple
from weir.wire.smp import commands as cmd
from weir.wire.smp.replies import PONG


async def test_redis_is_not_asked(hasty: Fleet, proxy: Proxy) -> None:
    peer = await hasty.client(0)
    proxy.hold()
    assert await peer.do(cmd.SUB(), os.urandom(24), generate("ed25519")) == err(Simple.INTERNAL)
    assert await peer.do(cmd.PING()) == PONG()


async def test_a_ping_with_credentials(fleet: Fleet) -> None:
    peer = await fleet.client(0)
    assert await peer.do(cmd.PING(), b"", generate("ed25519")) == err(CommandError.HAS_AUTH)
    assert await peer.do(cmd.PING(), os.urandom(24)) == err(CommandError.HAS_AUTH)


async def test_pings_among_other_commands_of_a_block(fleet: Fleet) -> None:
    peer = await fleet.client(0)
    key = generate("ed25519")
    requests = [Request(cmd.PING()), Request(cmd.SUB(), os.urandom(24), key), Request(cmd.PING())]
    assert await peer.smp.send_many(requests) == [PONG(), err(Simple.AUTH), PONG()]
