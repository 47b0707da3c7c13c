"""Messages that begin with a tag. SMP and NTF share their decoder.

message = tag, [space, parameters]
"""

from collections.abc import Callable, Mapping
from typing import Final, TypeVar

from weir.wire.encoding import Malformed
from weir.wire.errors import CommandError

M = TypeVar("M")
Reader = Callable[[int, bytes, int], M]
"""Takes the version, the whole message and the position of its parameters. Raises Malformed."""

_UNKNOWN: Final = CommandError.UNKNOWN
_SYNTAX: Final = CommandError.SYNTAX


def tagged_decoder(
    bare: Mapping[bytes, M], readers: Mapping[bytes, Reader[M]]
) -> Callable[[int, bytes], M | CommandError]:
    """Make the decoder of messages without parameters (`bare`) and with parameters (`readers`), by their tags.

    The decoder takes the version and the message. The error is UNKNOWN for an unknown tag and SYNTAX for wrong
    parameters.
    """
    longest = max(map(len, (*bare, *readers)))

    def decode(version: int, data: bytes) -> M | CommandError:
        if len(data) <= longest:
            message = bare.get(data)
            if message is not None:
                return message
        space = data.find(b" ", 0, longest + 1)
        if space < 0:
            return _SYNTAX if len(data) <= longest and data in readers else _UNKNOWN
        tag = data[:space]
        reader = readers.get(tag)
        if reader is None:
            return _SYNTAX if tag in bare else _UNKNOWN
        try:
            return reader(version, data, space + 1)
        except Malformed:
            return _SYNTAX

    return decode
