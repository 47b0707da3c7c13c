from weir.wire.credentials import reply_check
from weir.wire.errors import CommandError


def test_replies_with_and_without_entity() -> None:
    check = reply_check(either=frozenset((int,)), without_entity=frozenset((str,)))
    assert [check(reply, b"") for reply in (1, "", b"")] == [None, None, CommandError.NO_ENTITY]
    assert [check(reply, b"id") for reply in (1, "", b"")] == [None, CommandError.HAS_AUTH, None]
