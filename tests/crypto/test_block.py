import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from hypothesis import given
from hypothesis import strategies as st

from weir.crypto import block
from weir.crypto.boxes import LargeMessage, hsalsa20, secretbox, unpad

_SECRET = bytes(range(32))


def _chains() -> tuple[block.ChainKey, block.ChainKey]:
    return block.init_chains(b"session", _SECRET)


def _hkdf(salt: bytes, secret: bytes, info: bytes, size: int) -> bytes:
    return HKDF(hashes.SHA512(), size, salt, info).derive(secret)


@given(st.binary(max_size=40), st.binary(min_size=32, max_size=32))
def test_chains_are_hkdf(session_id: bytes, secret: bytes) -> None:
    start = _hkdf(session_id, secret, b"SimpleXSbChainInit", 64)
    for chain, key in zip(block.init_chains(session_id, secret), (start[:32], start[32:]), strict=True):
        for _ in range(3):
            out = _hkdf(b"", key, b"SimpleXSbChain", 88)
            key = out[:32]
            assert chain.next() == (out[32:64], out[64:])


@given(st.lists(st.binary(max_size=100), max_size=5))
def test_blocks_in_order(contents: list[bytes]) -> None:
    out, back = _chains()[0], _chains()[0]
    for content in contents:
        sealed = block.seal_block(out, content)
        assert len(sealed) == 16384
        assert block.open_block(back, sealed) == content


def test_directions_differ() -> None:
    server, client = _chains()
    assert block.open_block(client, block.seal_block(server, b"x")) is None


def test_each_block_once() -> None:
    out, back = _chains()[0], _chains()[0]
    first = block.seal_block(out, b"1")
    assert block.open_block(back, first) == b"1"
    assert block.open_block(back, first) is None


def test_order_matters() -> None:
    out, back = _chains()[0], _chains()[0]
    block.seal_block(out, b"1")
    assert block.open_block(back, block.seal_block(out, b"2")) is None


def test_largest_content() -> None:
    out, back = _chains()[0], _chains()[0]
    content = bytes(16384 - 18)
    assert block.open_block(back, block.seal_block(out, content)) == content
    with pytest.raises(LargeMessage):
        block.seal_block(out, content + b"x")


@given(st.binary(max_size=100))
def test_total(data: bytes) -> None:
    assert block.open_block(_chains()[0], data) is None


def test_a_length_that_says_too_much() -> None:
    out, back = _chains()[0], _chains()[0]
    key, nonce = out.next()
    lying = secretbox(hsalsa20(key), nonce, b"\xff\xff" + bytes(100))
    assert block.open_block(back, lying) is None
    key, nonce = out.next()
    empty = secretbox(hsalsa20(key), nonce, b"\0")
    assert block.open_block(back, empty) is None


@pytest.mark.parametrize("size", [512, 16384])
def test_plain_blocks(size: int) -> None:
    padded = block.pad_block(b"content", size)
    assert len(padded) == size
    assert padded.endswith(b"#")
    assert unpad(padded) == b"content"
    assert len(block.pad_block(bytes(size - 2), size)) == size
    with pytest.raises(LargeMessage):
        block.pad_block(bytes(size - 1), size)
