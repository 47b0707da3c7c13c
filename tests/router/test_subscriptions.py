from weir.router.subscriptions import ServiceTotals, Sub
from weir.wire import ids_hash


def test_the_same_message_is_not_given_twice() -> None:
    sub = Sub(1)
    assert sub.give(b"m1")
    assert not sub.give(b"m1")
    sub.clear()
    assert not sub.give(b"m1"), "acknowledged, and then the same event again"
    assert sub.give(b"m2")


def test_totals_follow_the_queues() -> None:
    totals = ServiceTotals()
    totals.add(b"a")
    totals.add(b"b")
    assert (totals.count, totals.ids_hash) == (2, ids_hash.of_ids([b"a", b"b"]))
    totals.subtract(b"a")
    assert (totals.count, totals.ids_hash) == (1, ids_hash.of_id(b"b"))


def test_totals_do_not_go_below_nothing() -> None:
    totals = ServiceTotals()
    totals.subtract(b"a")
    assert totals.take() == (0, ids_hash.EMPTY)
    totals.add(b"a")
    totals.subtract(b"other")
    assert totals.take() == (0, ids_hash.EMPTY)


def test_taking_ends_them() -> None:
    totals = ServiceTotals()
    totals.set(5, b"\1" * 16)
    assert totals.take() == (5, b"\1" * 16)
    assert totals.take() == (0, ids_hash.EMPTY)
