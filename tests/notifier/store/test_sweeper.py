"""The sweeper finishes what a dead edge has left half done."""

from tests.notifier.store.conftest import OpenEdge
from tests.notifier.store.harness import KEY, NtfEdge, device, queue
from weir.crypto.keys import generate
from weir.notifier.store.records import Status

OTHER_KEY = generate("ed25519")


async def swept(edge: NtfEdge) -> tuple[int, int]:
    """(removed, damaged) of a whole round."""
    cursor, removed, damaged = 0, 0, 0
    while True:
        found = await edge.store.sweeper.sweep_slice(cursor)
        assert found is not None
        removed, damaged, cursor = removed + found.removed, damaged + found.damaged, found.cursor
        if cursor == 0:
            return removed, damaged


async def test_nothing_that_is_in_use_goes(open_any: OpenEdge) -> None:
    edge = await open_any()
    token = await edge.active()
    subs = [await edge.subscription(token) for _ in range(5)]
    await edge.store.tokens.replace(token, device())
    assert await swept(edge) == (0, 0)
    assert await edge.store.tokens.fetch(token.id) is not None
    for sub in subs:
        assert await edge.store.notifications.find(sub.server_id, sub.queue.notifier_id) == sub.id


async def test_one_edge_sweeps(open_any: OpenEdge) -> None:
    edge, other = await open_any(), await open_any()
    assert await edge.store.sweeper.sweep_slice(0) is not None
    assert await other.store.sweeper.sweep_slice(0) is None
    await edge.store.sweeper.stop_sweeping()
    assert await other.store.sweeper.sweep_slice(0) is not None


async def test_a_deletion_that_stopped_half_way(open_any: OpenEdge) -> None:
    edge = await open_any()
    token = await edge.active()
    wanted = queue()
    await edge.subscription(token, wanted)
    core, p = edge.store.core, token.partition
    await core.call(p, "drop_token", [core.keys.token(p, token.id), core.keys.cron(p)], [b""])
    assert await edge.store.tokens.fetch(token.id) is None
    removed, damaged = await swept(edge)
    assert removed >= 1 and damaged == 0
    await swept(edge)
    counts = await edge.store.stats.counts()
    assert (counts["tokens"], counts["subscriptions"]) == (0, 0)
    left = [key for node in range(64) for key in await core.ask(node, b"KEYS", b"*:x:*")]
    assert left == []


async def test_the_index_of_a_subscription_that_is_gone(open_any: OpenEdge) -> None:
    edge = await open_any()
    token = await edge.active()
    sub = await edge.subscription(token)
    core, p = edge.store.core, token.partition
    await core.call(p, "unsubscribe", [core.keys.subscription(p, sub.id)], [])
    assert await swept(edge) == (1, 0)
    assert await edge.store.notifications.find(sub.server_id, sub.queue.notifier_id) is None


async def test_a_subscription_whose_index_was_lost(open_any: OpenEdge) -> None:
    """As after a fail-over of Redis that lost the last writes of one node."""
    edge = await open_any()
    first, second = await edge.active(), await edge.active()
    alone, taken = await edge.subscription(first), await edge.subscription(first)
    core = edge.store.core
    for sub in (alone, taken):
        name = sub.server_id + sub.queue.notifier_id
        await core.ask(core.partition(name), b"DEL", core.keys.notifier(core.partition(name), sub.server_id, name[24:]))
    newer = await edge.subscription(second, taken.queue)
    assert await swept(edge) == (2, 0)
    assert await edge.store.notifications.find(alone.server_id, alone.queue.notifier_id) == alone.id
    assert await edge.store.notifications.find(taken.server_id, taken.queue.notifier_id) == newer.id
    assert await edge.store.subscriptions.fetch(taken.id) is None
    assert (await edge.store.servers.totals(alone.server_id)).pending == 2


async def test_an_index_that_is_being_made_stays(open_one: OpenEdge) -> None:
    edge = await open_one()
    server_id = await edge.store.servers.ensure(queue().server)
    core = edge.store.core
    at = core.partition(server_id + b"n" * 24)
    index = core.keys.notifier(at, server_id, b"n" * 24)
    await core.call(at, "claim_notifier", [index], [b"s" * 24, b"", 60_000])
    assert await swept(edge) == (0, 0)


async def test_a_device_that_the_token_does_not_have(open_any: OpenEdge) -> None:
    """As after a crash between the first and the second step of TRPL."""
    edge = await open_any()
    token, wanted = await edge.active(), device()
    core, sealer = edge.store.core, edge.store.core.sealer
    at = core.partition(sealer.device(wanted))
    record = core.keys.device(at, sealer.device(wanted))
    await core.call(at, "enrol", [record], [sealer.verify_key(KEY.spki), token.id, b""])
    assert await swept(edge) == (1, 0)
    assert await core.ask(at, b"EXISTS", record) == 0
    assert await edge.store.tokens.fetch(token.id) is not None


async def test_an_expulsion_that_stopped_half_way(open_any: OpenEdge) -> None:
    """As after a crash of the edge that handled TVFY, before it deleted the device's other token."""
    edge = await open_any()
    given = device()
    old, new = await edge.active(given), await edge.registered(given, OTHER_KEY)
    core, sealer = edge.store.core, edge.store.core.sealer
    at = core.partition(sealer.device(given))
    record = core.keys.device(at, sealer.device(given))
    await core.call(at, "expel", [record], [sealer.verify_key(OTHER_KEY.spki), new.id])
    assert (await swept(edge))[0] >= 1
    assert await edge.store.tokens.fetch(old.id) is None
    assert await edge.store.tokens.activate(new, new.code) is Status.OK


async def test_the_client_finishes_it_too(open_any: OpenEdge) -> None:
    edge = await open_any()
    given = device()
    old, new = await edge.active(given), await edge.registered(given, OTHER_KEY)
    core, sealer = edge.store.core, edge.store.core.sealer
    at = core.partition(sealer.device(given))
    await core.call(
        at, "expel", [core.keys.device(at, sealer.device(given))], [sealer.verify_key(OTHER_KEY.spki), new.id]
    )
    assert await edge.store.tokens.activate(new, new.code) is Status.OK
    assert await edge.store.tokens.fetch(old.id) is None


async def test_inboxes_of_dead_edges(open_any: OpenEdge) -> None:
    edge = await open_any()
    core = edge.store.core
    await core.ask(7, b"RPUSH", core.keys.inbox(7, b"dead"), b"event")
    await swept(edge)
    assert await core.ask(7, b"EXISTS", core.keys.inbox(7, b"dead")) == 0


async def test_a_damaged_record_does_not_stop_the_sweep(open_one: OpenEdge) -> None:
    edge = await open_one()
    token, half = await edge.active(), await edge.active()
    core = edge.store.core
    await core.ask(token.partition, b"HSET", core.keys.token(token.partition, token.id), b"x", b"damaged")
    p = half.partition
    await core.call(p, "drop_token", [core.keys.token(p, half.id), core.keys.cron(p)], [b""])
    removed, damaged = await swept(edge)
    assert removed >= 1 and damaged == 1
