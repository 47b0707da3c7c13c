"""Commands as they go to Redis."""

from collections.abc import Iterable

RETRY_FLAG = b"$1\r\n0\r\n"
_RETRY_SET = b"1\r\n"


def bulk(value: bytes) -> bytes:
    return b"$%d\r\n%b\r\n" % (len(value), value)


def command(*words: bytes | int) -> bytes:
    return b"*%d\r\n" % len(words) + b"".join([bulk(w if isinstance(w, bytes) else b"%d" % w) for w in words])


def script_call(head: bytes, keys: Iterable[bytes], args: Iterable[bytes | int]) -> bytes:
    """`head` is `Scripts.head` for this many keys and one argument more than given: the retry flag ends the call."""
    words = [bulk(key) for key in keys]
    words += [bulk(a if isinstance(a, bytes) else b"%d" % a) for a in args]
    return head + b"".join(words) + RETRY_FLAG


def as_retry(wire: bytes) -> bytes:
    """The retry form of a script call: its last argument, the flag, becomes '1'."""
    return wire[:-3] + _RETRY_SET
