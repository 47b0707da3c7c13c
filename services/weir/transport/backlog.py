"""Closing a listening socket without resetting the connections in its backlog.

The kernel completes TCP handshakes by itself and queues the connections until the process accepts them. When the
listening socket is closed, the kernel resets all queued connections, although another process listens on the same port
(SO_REUSEPORT). So the socket first gets a packet filter that drops the first packet (SYN) of new connections. The
process accepts what is queued, to serve it or to end it cleanly, and then closes the socket. A client whose SYN was
dropped sends it again a second later, and the kernel gives it to another process.
"""

import ctypes
import socket
import struct
from typing import Final

LAST_ACCEPTS: Final = 0.1
"""Seconds for TCP handshakes that were under way when the filter was set."""

_SO_ATTACH_FILTER: Final = 26
_TCP_FLAGS, _SYN, _ACK = 13, 0x02, 0x10
# Classic BPF instructions: operation, jump if true, jump if false, operand. The packet begins with the TCP header.
_DROP_SYN: Final = (
    (0x30, 0, 0, _TCP_FLAGS),  # load one byte
    (0x54, 0, 0, _SYN | _ACK),  # and
    (0x15, 0, 1, _SYN),  # jump if equal
    (0x06, 0, 0, 0),  # return 0: drop
    (0x06, 0, 0, 0xFFFFFFFF),  # return: keep
)


def stop_filling(sock: socket.socket) -> bool:
    """Let no more connections into the backlog. Return False if the system has no such filter."""
    program = b"".join(struct.pack("HBBI", *instruction) for instruction in _DROP_SYN)
    buffer = ctypes.create_string_buffer(program)
    argument = struct.pack("HP", len(_DROP_SYN), ctypes.addressof(buffer))
    try:
        sock.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, argument)
    except OSError:
        return False
    return True
