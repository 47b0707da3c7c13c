from weir.runtime.cache import Cache


def key(n: int) -> bytes:
    return n.to_bytes(4, "big")


def test_keeps_what_was_put_and_drops_what_is_told() -> None:
    cache: Cache[int] = Cache(10)
    cache.put(b"a", 1)
    assert cache.get(b"a") == 1
    cache.drop(b"a")
    assert cache.get(b"a") is None


def test_is_bounded_and_keeps_at_least_half_of_the_latest() -> None:
    cache: Cache[int] = Cache(10)
    for n in range(100):
        cache.put(key(n), n)
    assert len(cache) <= 10
    assert [cache.get(key(n)) for n in range(95, 100)] == [95, 96, 97, 98, 99]
    assert cache.get(key(0)) is None


def test_what_is_used_stays() -> None:
    cache: Cache[int] = Cache(10)
    cache.put(b"used", 1)
    for n in range(100):
        cache.put(key(n), n)
        assert cache.get(b"used") == 1


def test_a_new_value_replaces_one_of_the_old_generation() -> None:
    cache: Cache[int] = Cache(4)
    cache.put(b"a", 1)
    cache.put(b"b", 1)
    cache.put(b"c", 1)  # a and b are old now
    cache.put(b"a", 2)
    assert cache.get(b"a") == 2
    cache.drop(b"a")
    assert cache.get(b"a") is None


def test_a_limit_of_zero_keeps_nothing() -> None:
    cache: Cache[int] = Cache(0)
    cache.put(b"a", 1)
    assert cache.get(b"a") is None
