from weir.router.session.subscriptions import PENDING_GAUGES, QueueTotals, Sub, Subscriptions
from weir.wire.smp import ids_hash

_GAUGES = ("subscriptions", "subscribed_clients", *PENDING_GAUGES)


def leave(subscriptions: Subscriptions, rcv_id: bytes, sub: Sub, at: int) -> None:
    """A message leaves for the client."""
    sub.give(b"message")
    sub.sent = at
    subscriptions.unacknowledged[rcv_id] = sub


def counted(subscriptions: Subscriptions) -> dict[str, int]:
    gauges = dict.fromkeys(_GAUGES, 0)
    subscriptions.count_into(gauges, 10_000)
    return {name: gauges[name] for name in ("subscriptions", "subscribed_clients", "in_flight")}


def test_the_same_message_is_not_given_twice() -> None:
    sub = Sub(1)
    assert sub.give(b"m1")
    assert not sub.give(b"m1")
    sub.clear()
    assert not sub.give(b"m1"), "acknowledged, and then the same event again"
    assert sub.give(b"m2")


def test_messages_that_wait_for_their_ack_by_how_long() -> None:
    gauges = dict.fromkeys(_GAUGES, 0)
    for sent in ([0, 9999, 9941, 9940], [9700, 8800, 6401, 6400], [0]):
        subscriptions = Subscriptions(None)
        for n, at in enumerate(sent):
            sub = subscriptions.queues[b"%d" % n] = Sub(n)
            if at:
                leave(subscriptions, b"%d" % n, sub, at)
        before = gauges["subscriptions"]
        subscriptions.count_into(gauges, 10_000)
        assert gauges["subscriptions"] == before + len(sent)
    for name in ("subscriptions", "subscribed_clients"):
        del gauges[name]
    assert gauges == {
        "in_flight": 7,
        "in_flight_clients": 2,
        "pending_60": 2,
        "pending_300": 1,
        "pending_1200": 1,
        "pending_3600": 2,
        "pending_more": 1,
        "pending_max": 3600,
    }


def test_what_is_acknowledged_or_gone_is_not_in_flight() -> None:
    subscriptions = Subscriptions(None)
    ids = [b"acked", b"removed", b"replaced", b"read", b"waits"]
    for rcv_id in ids:
        sub = subscriptions.queues[rcv_id] = Sub(1, prohibit=rcv_id == b"read")
        leave(subscriptions, rcv_id, sub, 9999)
    subscriptions.read_queues.add(b"read")
    assert counted(subscriptions) == {"subscriptions": 4, "subscribed_clients": 1, "in_flight": 5}
    subscriptions.queues[b"acked"].clear()
    subscriptions.remove(b"removed")
    subscriptions.queues[b"replaced"] = Sub(2)
    subscriptions.queues[b"read"].msg_id = None  # acknowledged after GET
    assert counted(subscriptions) == {"subscriptions": 3, "subscribed_clients": 1, "in_flight": 1}
    assert list(subscriptions.unacknowledged) == [b"waits"]
    del subscriptions.queues[b"read"]
    assert counted(subscriptions)["subscriptions"] == 3


def test_totals_follow_the_queues() -> None:
    totals = QueueTotals()
    totals.add(b"a")
    totals.add(b"b")
    assert (totals.count, totals.ids_hash) == (2, ids_hash.of_ids([b"a", b"b"]))
    totals.subtract(b"a")
    assert (totals.count, totals.ids_hash) == (1, ids_hash.of_id(b"b"))


def test_totals_do_not_go_below_nothing() -> None:
    totals = QueueTotals()
    totals.subtract(b"a")
    assert totals.take() == (0, ids_hash.EMPTY)
    totals.add(b"a")
    totals.subtract(b"other")
    assert totals.take() == (0, ids_hash.EMPTY)


def test_taking_ends_them() -> None:
    totals = QueueTotals()
    totals.set(5, b"\1" * 16)
    assert totals.take() == (5, b"\1" * 16)
    assert totals.take() == (0, ids_hash.EMPTY)
