"""Each answer to NSUB, and the status that a subscription gets."""

import pytest

from weir.client.errors import ClientError, CommandNotSent, ConnectionClosed, ReplyTimeout
from weir.client.smp import Answer
from weir.notifier.subscriber.outcomes import is_associated, is_subscribed, refusal
from weir.wire.errors import Blocked, BlockingInfo, BlockingReason, CommandError, Simple, Store, TransportError
from weir.wire.ntf.types import SubError, SubStatus
from weir.wire.smp.replies import ERR, OK, PONG, SOK

SERVICE = b"service-id-with-24-bytes"


@pytest.mark.parametrize("answer", [OK(), SOK(), SOK(SERVICE)])
def test_subscribed(answer: Answer) -> None:
    assert is_subscribed(answer)


@pytest.mark.parametrize(
    ("answer", "service_id", "associated"),
    [
        (SOK(SERVICE), SERVICE, True),
        (SOK(SERVICE), None, False),
        (SOK(SERVICE), b"another-id-with-24-bytes", False),
        (SOK(), SERVICE, False),
        (SOK(), None, False),
        (OK(), SERVICE, False),
    ],
)
def test_associated_with_the_service_of_this_session_only(
    answer: Answer, service_id: bytes | None, associated: bool
) -> None:
    assert is_associated(answer, service_id) is associated


@pytest.mark.parametrize(
    ("answer", "status"),
    [
        (ERR(Simple.AUTH), SubStatus.AUTH),
        (ERR(Simple.SERVICE), SubStatus.SERVICE),
        (ERR(Simple.QUOTA), SubError(b"SMP error QUOTA")),
        (ERR(CommandError.PROHIBITED), SubError(b"SMP error CMD PROHIBITED")),
        (ERR(Blocked(BlockingInfo(BlockingReason.SPAM))), SubError(b"SMP error BLOCKED reason=spam")),
        (PONG(), SubError(b"UnexpectedResponse PONG")),
        (CommandNotSent(TransportError.NO_AUTH), SubError(b"TransportError NO_AUTH")),
        (ERR(Simple.INTERNAL), None),
        (ReplyTimeout(), None),
        (ConnectionClosed(), None),
    ],
)
def test_refused(answer: Answer | ClientError, status: SubStatus | SubError | None) -> None:
    """Time-outs, network errors and INTERNAL leave the status."""
    assert not is_subscribed(answer)
    assert refusal(answer) == status


def test_a_foreign_servers_text_is_short_and_printable() -> None:
    assert refusal(ERR(Store("x\0\n" + "y" * 1000))) == SubError(b"SMP error STORE x??" + b"y" * 45)
