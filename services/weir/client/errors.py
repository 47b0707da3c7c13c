"""The errors of the clients."""

from typing import Any

from weir.wire.errors import TransportError


class ClientError(Exception):
    """The base of all errors of the clients."""


class ConnectionClosed(ClientError):
    """The connection ended before the reply arrived."""


class ReplyTimeout(ClientError):
    """The router did not reply within the timeout."""


class CommandNotSent(ClientError):
    """The command cannot be sent over this connection: it is too large, or the router has no session key."""

    def __init__(self, error: TransportError) -> None:
        super().__init__(error.value)
        self.error = error


class UnexpectedReply(ClientError):
    """The router's reply does not belong to the command. The message is the reply's class, without its contents."""

    def __init__(self, reply: Any) -> None:
        super().__init__(type(reply).__name__)
        self.reply = reply


class NoServiceSession(ClientError):
    """The connection has no service session in the role that the command needs."""
