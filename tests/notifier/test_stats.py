"""Counters and their names."""

from weir.notifier.stats import Active, Stats
from weir.wire.ntf.types import PushProvider


def test_behaviour_4_nothing_is_counted_for_null_tokens() -> None:
    stats = Stats()
    stats.count(PushProvider.APNS_NULL, "tknCreated")
    stats.pushed(PushProvider.APNS_NULL, "delivered", 1.0)
    assert stats.totals() == {}


def test_names() -> None:
    stats = Stats()
    stats.count(PushProvider.WEB_PUSH, "tknCreated")
    stats.own("smp.example.org", "ntfDelivered")
    stats.pushed(PushProvider.WEB_PUSH, "delivered", 0.004)
    assert stats.totals() == {
        "tknCreated": 1,
        "ntfDeliveredOwn_smp.example.org": 1,
        "pushes_web_push_delivered": 1,
        "pushMs_5": 1,
        "pushMsSum": 4,
    }


def test_what_was_active_is_taken_once() -> None:
    active = Active()
    add = active.notifiers.add
    add(b"n")
    active.tokens.add(b"t")
    tokens, notifiers = active.take()
    assert (tokens, notifiers) == ({b"t"}, {b"n"}) and active.take() == (set(), set())
    add(b"m")
    active.give_back(tokens, notifiers)
    assert active.take() == ({b"t"}, {b"n", b"m"})
