"""Seeds of fault runs that are kept."""

# Ten seeds whose plans together have every kind of fault on every kind of Redis (test_seeds.py computes that).
CHOSEN = (1, 2, 3, 4, 13, 20, 51, 146, 150, 194)

# Schedules that found a fault of the router once: (seed, seconds, kinds of faults, what it was).
_LEASES = "END and DELD were lost between a forward step of Redis' clock and the next renewal of leases"
FOUND: tuple[tuple[int, float, tuple[str, ...], str], ...] = (
    (4, 10.0, ("redis clock",), _LEASES),
    (5, 10.0, ("redis clock",), _LEASES),
)
