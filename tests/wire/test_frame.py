import pytest
from hypothesis import given
from hypothesis import strategies as st

from weir.wire.frame import (
    BATCH_OVERHEAD,
    MAX_BATCH,
    batch_spans,
    encode_client,
    encode_server,
    fits,
    for_auth,
    pack,
    pack_forward,
    split_transmission,
)
from weir.wire.smp.session import Session

_LIMIT = 16384 - BATCH_OVERHEAD
_ones = st.lists(st.integers(2, _LIMIT).map(lambda size: (size - 2).to_bytes(2, "big") + bytes(size - 2)), max_size=40)
_small = st.lists(st.binary(max_size=40).map(lambda data: len(data).to_bytes(2, "big") + data), max_size=600)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"", None),
        (b"\x00", None),
        (b"\x01", None),
        (b"\x01\x00", None),
        (b"\x01\x00\x00", [(3, 3)]),
        (b"\x01\x00\x01", None),
        (b"\x01\x00\x01a", [(3, 4)]),
        (b"\x01\x00\x01ab", None),
        (b"\x02\x00\x01a\x00\x02bc", [(3, 4), (6, 8)]),
        (b"\x02\x00\x01a", None),
    ],
)
def test_spans(content: bytes, expected: list[tuple[int, int]] | None) -> None:
    assert batch_spans(content) == expected


@given(st.binary(max_size=200), st.sampled_from([6, 7, 16, 19]))
def test_taking_apart_stays_inside(data: bytes, version: int) -> None:
    """Bytes outside of the transmission are never read, whatever the lengths inside say."""
    session = Session(bytes(32), version)
    alone = split_transmission(session, data, 0, len(data))
    inside = split_transmission(session, b"\xff" * 3 + data + b"\xff" * 300, 3, 3 + len(data))
    if alone is None or inside is None:
        assert alone is inside
    else:
        assert (alone[0], alone[1], alone[3], alone[4], alone[5]) == (
            inside[0],
            inside[1],
            inside[3],
            inside[4],
            inside[5],
        )
        assert (alone[2] + 3, alone[6] + 3) == (inside[2], inside[6])


@given(
    st.sampled_from([6, 7, 15, 16, 19]),
    st.sampled_from([b"", bytes(64), bytes(80), bytes(114)]),
    st.none() | st.binary(min_size=64, max_size=64),
    st.binary(max_size=40),
    st.binary(max_size=40),
    st.binary(max_size=100),
)
def test_client_transmissions(
    version: int, auth: bytes, service_sig: bytes | None, corr_id: bytes, entity_id: bytes, command: bytes
) -> None:
    session = Session(b"s" * 32, version)
    authorized, sent = for_auth(session, corr_id, entity_id, command)
    encoded = encode_client(session, sent, auth, service_sig)
    assert authorized.startswith(b"\x20" + session.session_id)
    raw = split_transmission(session, encoded, 2, len(encoded))
    assert raw is not None
    expected_sig = service_sig if auth and version >= 16 else None
    expected_session = None if version >= 7 else session.session_id
    assert raw[0:2] + raw[3:6] == (auth, expected_sig, expected_session, corr_id, entity_id)
    assert encoded[raw[6] :] == command
    prefix = session.auth_prefix if version >= 7 else b""
    assert prefix + encoded[raw[2] :] == authorized


@given(st.sampled_from([6, 7, 16]), st.binary(max_size=40), st.binary(max_size=40), st.binary(max_size=100))
def test_server_transmissions(version: int, corr_id: bytes, entity_id: bytes, reply: bytes) -> None:
    session = Session(b"s" * 32, version)
    encoded = encode_server(session, corr_id, entity_id, reply)
    assert batch_spans(b"\x01" + encoded) == [(3, len(encoded) + 1)]
    raw = split_transmission(session, encoded, 2, len(encoded))
    assert raw is not None
    assert (raw[0], raw[4], raw[5], encoded[raw[6] :]) == (b"", corr_id, entity_id, reply)


def _unpack(contents: list[bytes]) -> list[bytes]:
    found = []
    for content in contents:
        inside = batch_spans(content)
        assert inside is not None
        assert len(content) - 1 <= _LIMIT
        found += [content[at - 2 : end] for at, end in inside]
    return found


@given(st.one_of(_ones, _small))
def test_packing_keeps_everything_in_order(encoded: list[bytes]) -> None:
    assert _unpack(pack(encoded)) == encoded
    assert _unpack(pack_forward(encoded)) == encoded


@pytest.mark.parametrize(
    ("sizes", "backward", "forward"),
    [
        ([], [], []),
        ([10], [1], [1]),
        ([2] * 300, [45, 255], [255, 45]),
        ([4000] * 10, [2, 4, 4], [4, 4, 2]),
        ([_LIMIT, 2, 2], [1, 2], [1, 2]),
        ([2, _LIMIT, 2], [1, 1, 1], [1, 1, 1]),
        ([MAX_BATCH] * MAX_BATCH, [64 - 1, 64, 64, 64], [64, 64, 64, 63]),
    ],
)
def test_where_blocks_end(sizes: list[int], backward: list[int], forward: list[int]) -> None:
    encoded = [(size - 2).to_bytes(2, "big") + bytes(size - 2) for size in sizes]
    assert [content[0] for content in pack(encoded)] == backward
    assert [content[0] for content in pack_forward(encoded)] == forward


def test_too_large() -> None:
    assert fits(bytes(_LIMIT))
    assert not fits(bytes(_LIMIT + 1))
    with pytest.raises(ValueError, match="larger than a block"):
        pack([bytes(_LIMIT + 1)])
