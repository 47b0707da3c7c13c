import json

import pytest

from tests.notifier.push.pushes import message, opened, push, token
from weir.crypto.web_push import LARGEST_BODY, LARGEST_PLAINTEXT
from weir.notifier.push.payload import LONGEST, apns_body, joined, notification_data
from weir.notifier.store.records import PushKind
from weir.wire.ntf.push import encode_message

_FULL = tuple(message(number, hosts=6) for number in range(6))


def test_messages() -> None:
    one = push(message(1), message(2))
    data = notification_data(one)
    assert data is not None
    assert opened(one.token, data) == [message(1), message(2)]
    assert set(json.loads(data)) == {"nonce", "message"}


def test_a_verification_carries_the_code() -> None:
    one = push(kind=PushKind.VERIFICATION)
    data = notification_data(one)
    assert data is not None
    assert opened(one.token, data) == one.token.code
    assert set(json.loads(data)) == {"nonce", "verification"}


def test_a_check_carries_nothing() -> None:
    data = notification_data(push(kind=PushKind.CHECK))
    assert data == b'{"checkMessages":true}'


def test_nonces_differ() -> None:
    one = push(message())
    assert notification_data(one) != notification_data(one)


def test_what_apple_gets() -> None:
    one = push(message())
    data = notification_data(one, bytes(24))
    assert data is not None
    body = json.loads(apns_body(PushKind.MESSAGES, data))
    assert body == {
        "aps": {
            "mutable-content": 1,
            "alert": "Encrypted message or another app event",
            "category": "NTF_CAT_CHECK_MESSAGE",
        },
        "notificationData": json.loads(data),
    }
    for kind in (PushKind.VERIFICATION, PushKind.CHECK):
        assert json.loads(apns_body(kind, b"{}")) == {"aps": {"content-available": 1}, "notificationData": {}}


@pytest.mark.parametrize("kind", PushKind)
def test_flaw_6_every_body_fits_4096_bytes(kind: PushKind) -> None:
    """The reference's are 4,310 bytes."""
    data = notification_data(push(*_FULL, kind=kind))
    assert data is not None
    assert len(apns_body(kind, data)) <= 4096
    assert len(data) <= LARGEST_PLAINTEXT < LARGEST_BODY
    if kind is PushKind.MESSAGES:
        assert len(apns_body(kind, data)) > 4090  # a larger padding would not fit


def test_the_size_does_not_depend_on_the_messages() -> None:
    one, many = (notification_data(push(*messages)) for messages in ([message()], _FULL))
    assert one is not None
    assert many is not None
    assert len(one) == len(many)


def test_flaw_6_too_many_messages_drop_the_oldest() -> None:
    """The reference fails every push of such a token."""
    six = tuple(message(number, hosts=20) for number in range(6))
    assert sum(len(encode_message(one)) for one in six) > LONGEST
    one = push(*six)
    data = notification_data(one)
    assert data is not None
    kept = opened(one.token, data)
    assert isinstance(kept, list)
    assert 0 < len(kept) < 6
    assert tuple(kept) == six[-len(kept) :]


def test_messages_that_just_fit() -> None:
    last = message(1)
    room = LONGEST - 1 - len(encode_message(last))
    fits = next(one for size in range(3000, 0, -1) if len(encode_message(one := message(0, meta=size))) <= room)
    assert joined([fits, last]) == encode_message(fits) + b";" + encode_message(last)
    assert len(joined([fits, last])) > LONGEST - 8
    assert joined([message(0, meta=3 + len(fits.meta)), last]) == encode_message(last)


def test_a_message_that_cannot_fit_does_not_hold_others_back() -> None:
    """An SMP server chooses the size of NMSG."""
    huge = message(2, meta=4000)
    assert joined([message(1), huge]) == encode_message(message(1))
    assert notification_data(push(huge)) is None


def test_another_token_cannot_read() -> None:
    data = notification_data(push(message()))
    assert data is not None
    with pytest.raises(AssertionError):
        opened(token(), data)
