"""Answers by command and outcome."""

import pytest

from weir.runtime.answers import Answers
from weir.wire.errors import (
    Blocked,
    BlockingInfo,
    BlockingReason,
    CommandError,
    ErrorType,
    Name,
    NameErrorTag,
    Proxy,
    ProxyErrorTag,
    ProxyProtocol,
    Simple,
    Store,
)


class SEND:
    pass


class ACK:
    pass


def test_an_answer_without_an_error_is_ok() -> None:
    answers = Answers([SEND, ACK])
    assert answers.totals() == {}
    answers.by_command[SEND] += 3
    answers.failed(SEND, Simple.QUOTA)
    answers.by_command[ACK] += 1
    answers.failed(ACK, Simple.NO_MSG)
    assert answers.totals() == {"SEND.OK": 2, "SEND.QUOTA": 1, "ACK.NO_MSG": 1}


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        (Simple.LARGE_MSG, "LARGE_MSG"),
        (CommandError.PROHIBITED, "CMD"),
        (Blocked(BlockingInfo(BlockingReason.SPAM)), "BLOCKED"),
        (Store("what Redis said"), "STORE"),
        (Proxy(ProxyErrorTag.NO_SESSION), "PROXY"),
        (Proxy(ProxyProtocol(Simple.AUTH)), "PROXY"),
        (Name(NameErrorTag.NO_RESOLVER), "NAME"),
    ],
)
def test_an_outcome_is_the_first_word_of_the_error(error: ErrorType, outcome: str) -> None:
    answers = Answers([SEND])
    answers.by_command[SEND] += 1
    answers.failed(SEND, error)
    assert answers.totals() == {f"SEND.{outcome}": 1}


def test_unreadable_transmissions_belong_to_no_command() -> None:
    answers = Answers([SEND])
    answers.unreadable(CommandError.SYNTAX)
    answers.unreadable(Simple.BLOCK)
    assert answers.totals() == {"unreadable.CMD": 1, "unreadable.BLOCK": 1}
