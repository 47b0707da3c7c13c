"""Placement of ids in partitions."""

import os
import statistics

import pytest

from weir.runtime.state.placement import Placement


def test_partitions_are_even_and_keyed() -> None:
    placement, other = Placement(bytes(32)), Placement(bytes([1]) * 32)
    ids = [os.urandom(24) for _ in range(12800)]
    counts = [0] * 64
    same = 0
    for entity_id in ids:
        counts[placement.partition(entity_id)] += 1
        same += placement.partition(entity_id) == other.partition(entity_id)
    assert statistics.pstdev(counts) < 30
    assert 100 < same < 330  # one in 64: ids tell nothing without the key


def test_an_id_is_drawn_into_a_partition() -> None:
    placement = Placement(bytes(32))
    drawn = {placement.draw(7) for _ in range(5)}
    assert len(drawn) == 5 and {len(each) for each in drawn} == {24}
    assert {placement.partition(each) for each in drawn} == {7}


def test_the_check_value_differs_by_key() -> None:
    assert Placement(bytes(32)).check() == Placement(bytes(32)).check() != Placement(b"1" * 32).check()


def test_the_placement_key_has_a_length() -> None:
    with pytest.raises(ValueError, match="32 bytes"):
        Placement(b"short")
