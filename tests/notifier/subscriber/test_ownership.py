"""Who owns which SMP server: balance, few moves, no flapping. All replicas decide by themselves, as in a fleet."""

from hypothesis import given
from hypothesis import strategies as st

from weir.notifier.subscriber.ownership import Ownership, View, plan, ranking

SETTLE, PATIENCE = 3.0, 5.0
SERVERS = [b"server-%02d" % n for n in range(50)]
NAMES = [b"edge-%d" % n for n in range(8)]


class Fleet:
    """Replicas that take steps, and the store between them."""

    def __init__(self, servers: list[bytes] = SERVERS) -> None:
        self.now = 0.0
        self.joined: dict[bytes, float] = {}
        self.deciders: dict[bytes, Ownership] = {}
        self.owners: dict[bytes, bytes | None] = dict.fromkeys(servers)
        self.moves = 0

    def join(self, name: bytes) -> None:
        self.joined[name] = self.now
        self.deciders[name] = Ownership(name, settle=SETTLE, patience=PATIENCE)

    def leave(self, name: bytes) -> None:
        del self.joined[name], self.deciders[name]
        for server, owner in self.owners.items():
            if owner == name:
                self.owners[server] = None

    @property
    def view(self) -> View:
        return View({name: self.now - since for name, since in self.joined.items()}, dict(self.owners))

    def tick(self, seconds: float = 1.0) -> None:
        """Every replica acts on a view of its own, one after the other, as with different timers."""
        self.now += seconds
        for name, ownership in self.deciders.items():
            step = ownership.step(self.view, self.now)
            for server in step.own:
                if self.owners[server] is None:
                    self.owners[server] = name
                    self.moves += 1
            for server in step.hand_over:
                assert self.owners[server] == name
                self.owners[server] = None

    def loads(self) -> dict[bytes, int]:
        owners = list(self.owners.values())
        return {name: owners.count(name) for name in self.joined}

    def assert_balanced(self) -> None:
        assert None not in self.owners.values()
        share = -(-len(self.owners) // len(self.joined))
        assert max(self.loads().values()) <= share, self.loads()


def test_the_first_replica_owns_everything_at_once() -> None:
    fleet = Fleet()
    fleet.join(b"first")
    fleet.tick(0)
    assert set(fleet.owners.values()) == {b"first"}


@given(st.lists(st.tuples(st.sampled_from(NAMES), st.floats(0.2, 6)), max_size=30), st.integers(1, 60))
def test_fifty_servers_stay_balanced_while_replicas_come_and_go(
    events: list[tuple[bytes, float]], servers: int
) -> None:
    fleet = Fleet(SERVERS[:servers] + [b"more-%d" % n for n in range(servers - 50)])
    fleet.join(b"always")
    for name, seconds in events:
        (fleet.leave if name in fleet.joined else fleet.join)(name)
        fleet.tick(seconds)
        assert set(fleet.owners.values()) <= {None, *fleet.joined}
    for _ in range(10):
        fleet.tick()
    fleet.assert_balanced()
    settled, moves = dict(fleet.owners), fleet.moves
    for _ in range(20):
        fleet.tick()
    assert fleet.owners == settled and fleet.moves == moves, "nothing moves while nobody comes or goes"


def test_a_replica_that_dies_is_replaced_in_one_step_and_nothing_else_moves() -> None:
    fleet = Fleet()
    for name in NAMES[:5]:
        fleet.join(name)
    for _ in range(10):
        fleet.tick()
    before = dict(fleet.owners)
    fleet.leave(NAMES[2])
    fleet.tick()
    fleet.assert_balanced()
    assert {server for server in SERVERS if fleet.owners[server] != before[server]} == {
        server for server in SERVERS if before[server] == NAMES[2]
    }


def test_a_replica_that_joins_gets_its_share_and_each_server_moves_at_most_once() -> None:
    fleet = Fleet()
    for name in NAMES[:4]:
        fleet.join(name)
    for _ in range(10):
        fleet.tick()
    before, moves = dict(fleet.owners), fleet.moves
    fleet.join(b"new")
    for _ in range(10):
        fleet.tick()
    moved = [server for server in SERVERS if fleet.owners[server] != before[server]]
    assert {fleet.owners[server] for server in moved} == {b"new"}
    assert 8 <= len(moved) <= 10 and fleet.moves - moves == len(moved)
    fleet.assert_balanced()


def test_a_replica_that_keeps_crashing_moves_nothing() -> None:
    fleet = Fleet()
    for name in NAMES[:3]:
        fleet.join(name)
    for _ in range(10):
        fleet.tick()
    before = dict(fleet.owners)
    for _ in range(20):
        fleet.join(b"crashing")
        fleet.tick(SETTLE / 3)
        fleet.tick(SETTLE / 3)
        fleet.leave(b"crashing")
        assert fleet.owners == before
    assert set(fleet.owners.values()) == set(NAMES[:3])


def test_replicas_that_see_the_same_plan_the_same() -> None:
    owners: dict[bytes, bytes | None] = {server: NAMES[n % 3] for n, server in enumerate(SERVERS)}
    ages = dict.fromkeys(NAMES[:4], 100.0)
    backwards = View(dict(reversed(ages.items())), dict(reversed(owners.items())))
    assert plan(View(ages, owners), SETTLE) == plan(backwards, SETTLE)


def test_a_server_that_its_replica_does_not_take_goes_to_the_next() -> None:
    """A replica that hangs holds its lease for a moment, or does not see the server."""
    view = View(dict.fromkeys(NAMES[:3], 100.0), {b"server": None})
    first, second, third = ranking(b"server", NAMES[:3])
    replicas = {name: Ownership(name, settle=SETTLE, patience=PATIENCE) for name in NAMES[:3]}

    def takers(now: float) -> set[bytes]:
        return {name for name, replica in replicas.items() if replica.step(view, now).own}

    assert takers(0.0) == {first}
    assert takers(9.9) == {first}
    assert takers(10.0) == {first, second}
    assert takers(15.0) == {first, second, third}


def test_a_replica_without_a_lease_decides_nothing() -> None:
    view = View({NAMES[1]: 9.0}, dict.fromkeys(SERVERS))
    assert Ownership(NAMES[0], settle=SETTLE, patience=PATIENCE).step(view, 0.0) == ([], [])
