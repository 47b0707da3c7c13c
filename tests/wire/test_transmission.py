from weir.wire.transmission import block_spans


def test_spans_of_a_batch() -> None:
    assert block_spans(b"\x01\x00\x02ab") == [(3, 5)]
    assert block_spans(b"\x02\x00\x01a\x00\x02bc") == [(3, 4), (6, 8)]


def test_a_block_that_is_not_a_batch_has_one_empty_span() -> None:
    for content in (b"", b"\x00", b"\x01\x00", b"\x01\x00\x02a", b"\x01\x00\x01ab"):
        assert block_spans(content) == [(0, 0)]
