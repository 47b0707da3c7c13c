from hashlib import md5

from hypothesis import given
from hypothesis import strategies as st

from weir.wire.smp import ids_hash

_hashes = st.binary(min_size=16, max_size=16)


@given(_hashes, _hashes, _hashes)
def test_commutative_group(a: bytes, b: bytes, c: bytes) -> None:
    add = ids_hash.add
    assert add(a, b) == add(b, a)
    assert add(add(a, b), c) == add(a, add(b, c))
    assert add(a, ids_hash.EMPTY) == a
    assert add(a, a) == ids_hash.EMPTY


@given(st.lists(st.binary(max_size=30), max_size=20), st.randoms())
def test_of_ids(ids: list[bytes], random: object) -> None:
    total = ids_hash.EMPTY
    for one in ids:
        total = ids_hash.add(total, ids_hash.of_id(one))
    assert ids_hash.of_ids(ids) == total == ids_hash.of_ids(reversed(ids))


def test_of_id() -> None:
    assert ids_hash.of_id(b"a") == md5(b"a").digest()
    assert ids_hash.of_ids([]) == ids_hash.EMPTY == bytes(16)


def test_counted() -> None:
    a, b = ids_hash.of_id(b"a"), ids_hash.of_id(b"b")
    both = 2, ids_hash.of_ids([b"a", b"b"])
    assert ids_hash.subtract_subs(both, (1, b)) == (1, a)
    assert ids_hash.subtract_subs((1, a), (1, b)) == (0, ids_hash.EMPTY)
    assert ids_hash.subtract_subs((1, a), (2, b)) == (0, ids_hash.EMPTY)
