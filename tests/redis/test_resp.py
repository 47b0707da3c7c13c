"""Commands and script calls as they go to Redis."""

from enum import IntEnum

import pytest

from weir.redis.resp import as_retry, command, script_call
from weir.redis.scripts import Scripts


class Number(IntEnum):
    SEVEN = 7


@pytest.mark.parametrize(
    ("value", "written"), [(True, b"1"), (False, b"0"), (Number.SEVEN, b"7"), (-3, b"-3"), (b"", b"")]
)
def test_every_kind_of_int_is_written_as_its_number(value: bytes | int, written: bytes) -> None:
    assert command(b"SET", value, b"x") == b"*3\r\n$3\r\nSET\r\n$%d\r\n%b\r\n$1\r\nx\r\n" % (len(written), written)


def test_a_script_call_takes_a_flag_among_its_arguments() -> None:
    scripts = Scripts()
    scripts.shas["page"] = b"a" * 40
    head = scripts.head("page", 1, 3)
    wire = script_call(head, [b"key"], [b"argument", True])
    assert wire == head + b"$3\r\nkey\r\n$8\r\nargument\r\n$1\r\n1\r\n$1\r\n0\r\n"
    assert as_retry(wire) == wire[:-3] + b"1\r\n"


def test_what_redis_has_no_form_for_is_refused() -> None:
    with pytest.raises(TypeError):
        command(b"SET", b"key", None)  # type: ignore[arg-type]
