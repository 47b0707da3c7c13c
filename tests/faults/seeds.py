"""Fault runs that are kept: seeds, and schedules in `found`, each of which found a fault of the router once."""

from pathlib import Path

# Ten seeds whose plans together have every kind of fault on every kind of Redis (test_seeds.py computes that).
CHOSEN = (1, 51, 205, 268, 275, 464, 709, 726, 753, 935)

FOUND = sorted((Path(__file__).parent / "found").glob("*.txt"))
