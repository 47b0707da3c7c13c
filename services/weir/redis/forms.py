"""Wire forms: the constant bytes of a frequent command are put together once, and a call fills in only what differs.

A command is declared as a list of fields. `wire_forms` makes one function per partition from it. The function takes the
fields that are not constant, in their order, and returns the command as it goes to Redis:

    fields = [Key("q", "queue_id", 24), Variable("rev"), Fixed("operation", 8), Constant(b"5")]
    acks = wire_forms(tags, scripts.head("ack", 1, 3), fields)
    wire = acks[p](queue_id, rev, operation)

The functions are generated, as dataclasses generate theirs: one bytes template and one `%`, with the lengths of the
variable fields beside them, is the fastest way to build such a command in CPython.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from weir.redis.resp import bulk


class Key(NamedTuple):
    """A key `tag:kind:id` in the partition of the tag; `length` is the length of the id."""

    kind: str
    name: str
    length: int


class Variable(NamedTuple):
    """A value of any length."""

    name: str


class Fixed(NamedTuple):
    """A value that always has this length."""

    name: str
    length: int


class Number(NamedTuple):
    """A whole number, padded with zeros to this width."""

    name: str
    width: int


class Length(NamedTuple):
    """The length of a value that the caller sends after this command: a large value is not copied."""

    name: str


class Constant(NamedTuple):
    value: bytes


Field = Key | Variable | Fixed | Number | Length | Constant


def wire_forms(
    tags: Sequence[bytes], start: bytes, fields: Sequence[Field], end: bytes = b""
) -> list[Callable[..., bytes]]:
    """A function for each tag. A name that is in several fields is one argument."""
    names: dict[str, None] = {}
    values: list[str] = []
    for field in fields:
        if isinstance(field, Constant):
            continue
        names[field.name] = None
        if isinstance(field, Variable):
            values.append(f"len({field.name})")
        values.append(field.name)
    source = f"lambda template: lambda {', '.join(names)}: template % ({', '.join(values)},)"
    generate: Callable[[bytes], Callable[..., bytes]] = eval(source, {"__builtins__": {"len": len}})
    return [
        generate(_literal(start) + b"".join([_placeholder(field, tag) for field in fields]) + _literal(end))
        for tag in tags
    ]


def wire_form(fields: Sequence[Field]) -> Callable[..., bytes]:
    """The function for a part of a command that is the same in every partition: fields without a key."""
    return wire_forms((b"",), b"", fields)[0]


def _placeholder(field: Field, tag: bytes) -> bytes:
    match field:
        case Key(kind, _, length):
            prefix = b"%b:%b:" % (tag, kind.encode())
            return b"$%d\r\n%b%%b\r\n" % (len(prefix) + length, _literal(prefix))
        case Variable():
            return b"$%d\r\n%b\r\n"
        case Fixed(_, length):
            return b"$%d\r\n" % length + b"%b\r\n"
        case Number(_, width):
            return b"$%d\r\n%%0%dd\r\n" % (width, width)
        case Length():
            return b"$%d\r\n"
        case Constant(value):
            return _literal(bulk(value))


def _literal(text: bytes) -> bytes:
    return text.replace(b"%", b"%%")
