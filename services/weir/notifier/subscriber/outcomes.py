"""Answers to NSUB, as statuses of subscriptions."""

from __future__ import annotations

from typing import Final

from weir.client.errors import ClientError, CommandNotSent
from weir.client.smp import Answer
from weir.wire.error_codec import encode_error, encode_transport_error
from weir.wire.errors import Simple
from weir.wire.ntf.types import SubError, SubStatus
from weir.wire.smp.replies import ERR, OK, SOK

_MAX_TEXT: Final = 64  # of an error: a foreign server wrote it, and it goes to the device in a block of 512 bytes


def is_subscribed(answer: Answer | ClientError) -> bool:
    return isinstance(answer, OK | SOK)


def is_associated(answer: Answer | ClientError, service_id: bytes | None) -> bool:
    """Whether NSUB has associated the queue with the service of this session."""
    return isinstance(answer, SOK) and answer.service_id is not None and answer.service_id == service_id


def refusal(answer: Answer | ClientError) -> SubStatus | SubError | None:
    """The status of a subscription that NSUB did not make. None: the status stays, and NSUB is sent again soon.

    Time-outs, network errors and INTERNAL, with which a server says that it has trouble of its own, pass by themselves.
    """
    if isinstance(answer, CommandNotSent):
        return _error(b"TransportError " + encode_transport_error(answer.error))
    if isinstance(answer, ClientError):
        return None
    if isinstance(answer, ERR):
        if answer.error is Simple.INTERNAL:
            return None
        if answer.error is Simple.AUTH:
            return SubStatus.AUTH
        if answer.error is Simple.SERVICE:
            return SubStatus.SERVICE
        return _error(b"SMP error " + encode_error(answer.error))
    return _error(b"UnexpectedResponse " + type(answer).__name__.encode())


def _error(text: bytes) -> SubError:
    return SubError(bytes(byte if 32 <= byte < 127 else 63 for byte in text[:_MAX_TEXT]))
