"""What the control port prints. tests/notifier/test_edge.py speaks to a port."""

from weir.notifier.subscriber.state import ServerState, numbers
from weir.notifier.surface.control import server_info, stats
from weir.surface.fleet import FleetNumbers


def test_stats_in_the_references_order() -> None:
    counted = {"fromTime": 1_800_000_000, "tknCreated": 3, "ntfVrfInvalidTkn": 1}
    lines = list(stats(FleetNumbers(counted, {"tokens_day": 2}, {}, {})))
    assert lines[:2] == ["fromTime: 2027-01-15 08:00:00 UTC", "tknCreated: 3"]
    assert lines[-3:] == ["ntfVrfInvalidTkn: 1", "daily active tokens: 2", "daily active subscriptions: 0"]


def test_server_info_adds_edges_up() -> None:
    own = ServerState(name="smp.example.org", connected=True, service=True, service_active=7)
    edges = {"a": numbers([own]), "b": {**numbers([ServerState(queues_active=3)]), "clients": 4, "pushes_in_flight": 2}}
    lines = list(server_info(FleetNumbers({}, {}, edges, {})))
    assert lines[:2] == ["Threads: 2", "Clients: 4"]
    assert "SMP service subscriptions total: 7" in lines and "SMP service subscriptions on own servers: 7" in lines
    assert "SMP queue subscriptions on other servers: 3" in lines
    assert lines[-1] == "Push notifications queue length: 2"
