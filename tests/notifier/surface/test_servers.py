"""The published state of own SMP servers, read back."""

from weir.notifier.subscriber.state import ServerState
from weir.notifier.surface.servers import own_servers


def test_a_published_state_is_read_back() -> None:
    state = ServerState(name="smp.example.org", connected=True, since=9.5, queues_active=3, queues_pending=1, drift=-2)
    [server] = own_servers([state.published()])
    assert (server.name, server.subscribed, server.since, server.count, server.pending) == (
        "smp.example.org", True, 9, 3, 1,
    )  # fmt: skip
    assert (server.drift, server.last, server.problem) == (-2, None, "")
    assert (server.of("queues", "active"), server.of("service", "active")) == (3, 0)


def test_servers_without_a_name_or_a_state_are_left_out() -> None:
    assert own_servers([{}, ServerState().published()]) == []
