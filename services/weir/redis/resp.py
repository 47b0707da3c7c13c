"""The Redis protocol (RESP): how a command is written."""

from collections.abc import Callable, Iterable
from typing import Any

import hiredis

_pack_exact: Callable[[tuple[Any, ...]], bytes] = hiredis.pack_command  # hiredis' types know tuples of one word only
RETRY_FLAG = b"$1\r\n0\r\n"
_RETRY_SET = b"1\r\n"


def bulk(value: bytes) -> bytes:
    return b"$%d\r\n%b\r\n" % (len(value), value)


def command(*words: bytes | int) -> bytes:
    return _pack(words)


def _pack(words: tuple[bytes | int, ...]) -> bytes:
    """For a type checker bool and IntEnum are int, but hiredis refuses them: they are written as their number."""
    try:
        return _pack_exact(words)
    except TypeError:
        return _pack_exact(tuple(int(word) if isinstance(word, int) else word for word in words))


def script_call(head: bytes, keys: Iterable[bytes], args: Iterable[bytes | int]) -> bytes:
    """A script call. `head` is `Scripts.head` for these keys and arguments, of which the retry flag is one."""
    words = _pack((*keys, *args, b"0"))
    return head + words[words.index(b"\n") + 1 :]  # without its count of words, which is in the head


def as_retry(wire: bytes) -> bytes:
    """The retry form of a script call: its last argument, the flag, becomes '1'."""
    return wire[:-3] + _RETRY_SET
