import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.wire import strategies as s
from weir.wire.ntf.push import PNMessageData, decode_message, decode_messages, encode_message, encode_messages
from weir.wire.ntf.types import SmpQueueNtf

_data = st.builds(
    PNMessageData,
    st.builds(SmpQueueNtf, s.server_host, s.some_id),
    st.integers(0, 2**40),
    st.binary(min_size=24, max_size=24),
    s.large,
)


@given(st.lists(_data, min_size=1, max_size=4))
def test_round_trip(values: list[PNMessageData]) -> None:
    assert decode_messages(encode_messages(values)) == values


@given(s.mutated(_data.map(encode_message)))
def test_total(text: bytes) -> None:
    value = decode_message(text)
    if value is not None:
        assert decode_message(encode_message(value)) == value


_PRINT = "4OHi4-Tl5ufo6err7O3u7_Dx8vP09fb3-Pn6-_z9_v8="
_NONCE = "A" * 32


@pytest.mark.parametrize(
    "text",
    [
        "",
        f"smp://{_PRINT}@h/AAAA 1 {_NONCE}",
        f"smp://{_PRINT}@h/AAAA x {_NONCE} AAAA",
        f"smp://{_PRINT}@h/AAAA 1 AAAA AAAA",
        f"smp://{_PRINT}@h/A 1 {_NONCE} AAAA",
        f"smp://{_PRINT}:auth@h/AAAA 1 {_NONCE} AAAA",
        f"smp://nope@h/AAAA 1 {_NONCE} AAAA",
    ],
)
def test_not_message_data(text: str) -> None:
    assert decode_messages(text.encode()) is None
