import pytest
from hypothesis import given
from hypothesis import strategies as st

from weir.crypto import boxes

_SECRET, _NONCE = bytes(range(32)), bytes(range(24))


@given(st.binary(max_size=100), st.integers(0, 50))
def test_padding(message: bytes, more: int) -> None:
    padded = boxes.pad(message, len(message) + 2 + more)
    assert len(padded) == len(message) + 2 + more
    assert padded.endswith(b"#" * more)
    assert boxes.unpad(padded) == message


@pytest.mark.parametrize(("message", "length"), [(b"", 1), (b"abc", 4), (bytes(0xFFFE), 0x10010)])
def test_what_does_not_fit(message: bytes, length: int) -> None:
    with pytest.raises(boxes.LargeMessage):
        boxes.pad(message, length)


@pytest.mark.parametrize(
    ("padded", "message"), [(b"", None), (b"\0", None), (b"\0\0", b""), (b"\0\1", None), (b"\0\1ab", b"a")]
)
def test_unpad(padded: bytes, message: bytes | None) -> None:
    assert boxes.unpad(padded) == message


@given(st.binary(max_size=100))
def test_boxes(message: bytes) -> None:
    box = boxes.cb_encrypt(_SECRET, _NONCE, message, 128)
    assert len(box) == 128 + 16
    assert boxes.cb_decrypt(_SECRET, _NONCE, box) == message
    assert boxes.cb_decrypt(_SECRET, boxes.reverse_nonce(_NONCE), box) is None
    bare = boxes.cb_encrypt_no_pad(_SECRET, _NONCE, message)
    assert len(bare) == len(message) + 16
    assert boxes.cb_decrypt_no_pad(_SECRET, _NONCE, bare) == message
    assert boxes.cb_decrypt_no_pad(_SECRET, _NONCE, bare[1:]) is None


@given(st.binary(max_size=80))
def test_total(box: bytes) -> None:
    assert boxes.cb_decrypt(_SECRET, _NONCE, box) is None
    assert boxes.cb_decrypt_no_pad(_SECRET, _NONCE, box) is None
    boxes.unpad(box)


@given(st.binary(max_size=40))
def test_nonces(data: bytes) -> None:
    nonce = boxes.nonce_of(data)
    assert len(nonce) == 24
    assert nonce.startswith(data[:24])
    assert not nonce[len(data) :].strip(b"\0")
    assert boxes.reverse_nonce(boxes.reverse_nonce(nonce)) == nonce
