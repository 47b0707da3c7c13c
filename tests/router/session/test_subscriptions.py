from weir.router.session.subscriptions import PENDING_GAUGES, QueueTotals, Sub, count_subs
from weir.wire.smp import ids_hash


def test_the_same_message_is_not_given_twice() -> None:
    sub = Sub(1)
    assert sub.give(b"m1")
    assert not sub.give(b"m1")
    sub.clear()
    assert not sub.give(b"m1"), "acknowledged, and then the same event again"
    assert sub.give(b"m2")


def test_messages_that_wait_for_their_ack_by_how_long() -> None:
    gauges = dict.fromkeys(PENDING_GAUGES, 0)
    for sent in ([0, 9999, 9941, 9940], [9700, 8800, 6401, 6400], [0]):
        subs = [Sub(n) for n in range(len(sent))]
        for sub, at in zip(subs, sent, strict=True):
            sub.sent = at
        assert count_subs([*subs, Sub(0, prohibit=True)], 10_000, gauges) == len(sent), "GET is no subscription"
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
