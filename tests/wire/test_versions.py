import pytest

from weir.wire.versions import SMP_LEGACY_RANGE, SMP_RANGE, VersionRange, max_message_length


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        ((6, 19), (8, 17), (8, 17)),
        ((6, 10), (8, 19), (8, 10)),
        ((6, 7), (8, 9), None),
        ((6, 6), (6, 19), (6, 6)),
    ],
)
def test_compatible(left: tuple[int, int], right: tuple[int, int], expected: tuple[int, int] | None) -> None:
    for one, other in ((left, right), (right, left)):
        assert VersionRange(*one).compatible(VersionRange(*other)) == (expected and VersionRange(*expected))


def test_ranges() -> None:
    assert SMP_RANGE == (6, 19)
    assert SMP_LEGACY_RANGE == (6, 6)


@pytest.mark.parametrize(
    ("version", "length"), [(6, 16088), (7, 16088), (8, 16064), (10, 16064), (11, 16048), (19, 16048)]
)
def test_largest_body(version: int, length: int) -> None:
    assert max_message_length(version) == length
