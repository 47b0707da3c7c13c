"""SMP servers on the page and in metrics."""

from weir.notifier.subscriber.state import ServerState, SubscriberStats, numbers


def test_what_was_active_is_pending_after_a_disconnection() -> None:
    state = ServerState("smp.example", service_active=5, queues_active=2, queues_pending=1, since=100.0)
    state.connect(True)
    assert state.subscribed and state.count == 7
    state.disconnect("NETWORK")
    assert not (state.subscribed or state.connected or state.service)
    assert (state.service_pending, state.queues_pending, state.count) == (5, 3, 0)
    assert state.published() == {
        "name": "smp.example",
        "subscribed": "0",
        "since": "",
        "service": "0",
        "count": "0",
        "pending": "8",
        "drift": "0",
        "last": "",
        "problem": "NETWORK",
    }


def test_numbers_tell_own_servers_from_others() -> None:
    states = [
        ServerState("own.example", needed=True, connected=True, since=1.0, service_active=1000),
        ServerState(needed=True, connected=True, since=1.0, service_active=10, queues_active=3),
        ServerState(needed=True, queues_pending=4),
        ServerState(),
    ]
    found = {name: value for name, value in numbers(states).items() if value}
    assert found == {
        "smp_servers": 3,
        "smp_servers_subscribed": 2,
        "smp_clients_own": 1,
        "smp_clients_other": 1,
        "smp_service_active_servers_own": 1,
        "smp_service_active_subs_own": 1000,
        "smp_service_active_servers_other": 1,
        "smp_service_active_subs_other": 10,
        "smp_queues_active_servers_other": 1,
        "smp_queues_active_subs_other": 3,
        "smp_queues_pending_servers_other": 1,
        "smp_queues_pending_subs_other": 4,
    }
    assert numbers([]) == dict.fromkeys(numbers(states), 0)


def test_counters() -> None:
    stats = SubscriberStats(ntfReceived=2, ntfReceivedOwn={"own.example": 1})
    assert stats.totals() == {"ntfReceived": 2, "ntfReceivedOwn_own.example": 1}
