"""The reference's forms, as its control port prints them and reads them."""

import pytest

from weir.router.store.records import EntityStatus
from weir.router.surface.control_words import read_blocking, show_blocking, show_status
from weir.wire.errors import BlockingInfo, BlockingReason

SPAM, CONTENT = BlockingReason.SPAM, BlockingReason.CONTENT


@pytest.mark.parametrize(
    ("typed", "info", "shown"),
    [
        ("reason=spam", BlockingInfo(SPAM), "BlockingInfo {reason = BRSpam, notice = Nothing}"),
        (
            'reason=content,notice={ "ttl" : 60 }',
            BlockingInfo(CONTENT, b'{"ttl":60}'),
            "BlockingInfo {reason = BRContent, notice = Just (ClientNotice {ttl = Just 60})}",
        ),
        (
            'reason=spam,notice={"ttl":-1,"more":2}',
            BlockingInfo(SPAM, b'{"ttl":-1}'),
            "BlockingInfo {reason = BRSpam, notice = Just (ClientNotice {ttl = Just (-1)})}",
        ),
        (
            'reason=spam,notice={"ttl":null}',
            BlockingInfo(SPAM, b"{}"),
            "BlockingInfo {reason = BRSpam, notice = Just (ClientNotice {ttl = Nothing})}",
        ),
    ],
)
def test_why_a_queue_is_blocked(typed: str, info: BlockingInfo, shown: str) -> None:
    assert read_blocking(typed) == info
    assert show_blocking(info) == shown
    assert show_status(info) == f"EntityBlocked ({shown})"


@pytest.mark.parametrize("typed", ["spam", "reason=", "reason=boredom", "reason=spam,notice=", "reason=spam,notice=[]"])
def test_what_is_no_reason(typed: str) -> None:
    assert read_blocking(typed) is None


def test_a_queue_that_is_not_blocked() -> None:
    assert [show_status(status) for status in EntityStatus] == ["EntityActive", "EntityOff"]
