import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.wire import strategies as s
from weir.wire.smp.queue_info import MsgInfo, MsgType, QSub, QueueInfo, SubThread


@given(s.queue_info)
def test_round_trip(info: QueueInfo) -> None:
    assert QueueInfo.from_json(info.to_json()) == info


@given(st.binary(max_size=100))
def test_total(text: bytes) -> None:
    QueueInfo.from_json(text)


def test_text() -> None:
    message = MsgInfo.of(b"msg", 1700000000, MsgType.MESSAGE)
    info = QueueInfo(True, True, QSub(SubThread.SUB_THREAD, "d3N0"), 3, message)
    assert info.to_json() == (
        b'{"qiSnd":true,"qiNtf":true,"qiSub":{"qSubThread":"subThread","qDelivered":"d3N0"},"qiSize":3,'
        b'"qiMsg":{"msgId":"bXNn","msgTs":"2023-11-14T22:13:20Z","msgType":"message"}}'
    )


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"[]",
        b"{}",
        b"\xff",
        b'{"qiSnd":1,"qiNtf":true,"qiSize":0}',
        b'{"qiSnd":true,"qiNtf":true,"qiSize":true}',
        b'{"qiSnd":true,"qiNtf":true,"qiSize":0,"qiSub":[]}',
        b'{"qiSnd":true,"qiNtf":true,"qiSize":0,"qiSub":{"qSubThread":"x"}}',
        b'{"qiSnd":true,"qiNtf":true,"qiSize":0,"qiSub":{"qSubThread":[]}}',
        b'{"qiSnd":true,"qiNtf":true,"qiSize":0,"qiSub":{"qSubThread":"noSub","qDelivered":1}}',
        b'{"qiSnd":true,"qiNtf":true,"qiSize":0,"qiMsg":"x"}',
        b'{"qiSnd":true,"qiNtf":true,"qiSize":0,"qiMsg":{"msgId":1,"msgTs":"","msgType":"quota"}}',
        b'{"qiSnd":true,"qiNtf":true,"qiSize":0,"qiMsg":{"msgId":"","msgTs":"","msgType":"x"}}',
    ],
)
def test_not_an_info(text: bytes) -> None:
    assert QueueInfo.from_json(text) is None
