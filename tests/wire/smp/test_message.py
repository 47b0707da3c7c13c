import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.wire import strategies as s
from weir.wire.smp import message as m

_SECRET, _ID = bytes(range(32)), bytes(range(24))
_bodies = st.one_of(st.binary(max_size=100), st.just(bytes(m.MAX_BODY)))
_seconds = st.integers(0, 2**40)


@given(_seconds, st.booleans(), _bodies)
def test_message_round_trip(ts: int, notification: bool, body: bytes) -> None:
    encrypted = m.encrypt_message(_SECRET, _ID, ts, notification, body)
    assert len(encrypted) == m.ENCRYPTED_LENGTH == 16122
    assert m.decrypt_message(_SECRET, _ID, encrypted) == m.RcvMsgBody(ts, notification, body)
    assert m.decrypt_message(_SECRET, bytes(24), encrypted) is None


@given(_seconds)
def test_quota_round_trip(ts: int) -> None:
    encrypted = m.encrypt_quota(_SECRET, _ID, ts)
    assert len(encrypted) == m.ENCRYPTED_LENGTH
    assert m.decrypt_message(_SECRET, _ID, encrypted) == m.RcvMsgQuota(ts)


@given(s.ids, _seconds)
def test_meta_round_trip(msg_id: bytes, ts: int) -> None:
    encrypted = m.encrypt_nmsg_meta(_SECRET, _ID, m.NMsgMeta(msg_id, ts))
    assert len(encrypted) == 144
    assert m.decrypt_nmsg_meta(_SECRET, _ID, encrypted) == m.NMsgMeta(msg_id, ts)
    assert m.decrypt_nmsg_meta(_SECRET, bytes(24), encrypted) is None


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", None),
        (bytes(8) + b"F", None),
        (bytes(8) + b"F ", m.RcvMsgBody(0, False, b"")),
        (bytes(8) + b"Tabc x", m.RcvMsgBody(0, True, b"x")),
        (bytes(8) + b"X x", None),
        (bytes(8) + b"Fxxx", None),
        (b"QUOTA " + bytes(7) + b"\x01", m.RcvMsgQuota(1)),
        (b"QUOTA " + bytes(7), None),
    ],
)
def test_decode_body(data: bytes, expected: object) -> None:
    assert m.decode_body(data) == expected


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", None),
        (b"\x02a", None),
        (b"\x01a" + bytes(7), None),
        (b"\x01a" + bytes(8) + b"later", m.NMsgMeta(b"a", 0)),
    ],
)
def test_decode_meta(data: bytes, expected: object) -> None:
    assert m.decode_nmsg_meta(data) == expected


@given(st.binary(max_size=60))
def test_total(data: bytes) -> None:
    m.decode_body(data)
    m.decode_nmsg_meta(data)
    assert m.decrypt_message(_SECRET, _ID, data) is None
    assert m.decrypt_message(_SECRET, data, data) is None
