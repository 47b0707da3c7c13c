"""Wire forms: what they generate is what the plain way of building a command gives."""

import os

import pytest

from weir.redis.forms import Constant, Field, Fixed, Key, Length, Number, Variable, wire_form, wire_forms
from weir.redis.partitions import PARTITIONS, Partitions
from weir.redis.resp import command

TAGS = Partitions().tags
FIELDS: list[Field] = [
    Key("q", "queue_id", 24),
    Key("m", "queue_id", 24),
    Key("b", "msg_id", 24),
    Variable("rev"),
    Fixed("operation", 8),
    Number("before", 10),
    Constant(b"100% of 128"),
    Variable("service"),
]


@pytest.mark.parametrize("service", [b"", b"%s%", os.urandom(24)])
@pytest.mark.parametrize("p", [0, 9, 10, PARTITIONS - 1])
def test_a_form_builds_the_same_bytes_as_command(p: int, service: bytes) -> None:
    queue_id, msg_id, operation = os.urandom(24), os.urandom(24), os.urandom(8)
    words = [
        b"EVALSHA",
        b"{%d}:q:" % p + queue_id,
        b"{%d}:m:" % p + queue_id,
        b"{%d}:b:" % p + msg_id,
        b"17",
        operation,
        b"0000000042",
        b"100% of 128",
        service,
        b"0",
    ]
    forms = wire_forms(TAGS, b"*10\r\n$7\r\nEVALSHA\r\n", FIELDS, b"$1\r\n0\r\n")
    assert forms[p](queue_id, msg_id, b"17", operation, 42, service) == command(*words)


def test_the_arguments_are_the_names_in_their_order() -> None:
    form = wire_forms(TAGS, b"", FIELDS)[0]
    assert form.__code__.co_varnames == ("queue_id", "msg_id", "rev", "operation", "before", "service")


def test_a_value_that_is_sent_apart() -> None:
    form = wire_forms(TAGS, b"*3\r\n$3\r\nSET\r\n", [Key("b", "msg_id", 24), Length("size")])[5]
    msg_id, body = os.urandom(24), os.urandom(1000)
    assert form(msg_id, len(body)) + body + b"\r\n" == command(b"SET", b"{5}:b:" + msg_id, body)


def test_a_part_that_is_the_same_in_every_partition() -> None:
    form = wire_form([Variable("rev"), Constant(b""), Fixed("hash", 16)])
    hashed = os.urandom(16)
    assert b"*3\r\n" + form(b"17", hashed) == command(b"17", b"", hashed)
