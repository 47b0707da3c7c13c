from hypothesis import given
from hypothesis import strategies as st

from tests.wire import strategies as s
from weir.wire.smp import forward as f

_INNER, _OUTER = bytes(range(32)), bytes(range(1, 33))
_transmissions = st.builds(f.FwdTransmission, s.ids, s.word16, s.raw_key, s.large)
_responses = st.builds(f.FwdResponse, s.ids, s.large)


@given(_transmissions, _responses)
def test_round_trips(transmission: f.FwdTransmission, response: f.FwdResponse) -> None:
    assert f.decode_fwd_transmission(f.encode_fwd_transmission(transmission)) == transmission
    assert f.decode_fwd_response(f.encode_fwd_response(response)) == response


@given(_transmissions, _responses, s.ids)
def test_outer_layer(transmission: f.FwdTransmission, response: f.FwdResponse, corr_id: bytes) -> None:
    sealed = f.seal_forward(_OUTER, corr_id, transmission)
    assert f.open_forward(_OUTER, corr_id, sealed) == transmission
    assert f.open_forward(_INNER, corr_id, sealed) is None
    answer = f.seal_forward_response(_OUTER, corr_id, response)
    assert f.open_forward_response(_OUTER, corr_id, answer) == response
    assert f.open_forward_response(_INNER, corr_id, answer) is None


@given(st.binary(max_size=200))
def test_inner_layer(batch: bytes) -> None:
    corr_id = bytes(range(24))
    request, answer = f.seal_transmission(_INNER, corr_id, batch), f.seal_response(_INNER, corr_id, batch)
    assert len(request) == len(answer) == 16242
    assert f.open_transmission(_INNER, corr_id, request) == batch
    assert f.open_response(_INNER, corr_id, answer) == batch
    # a request is not an answer: the nonce is reversed
    assert f.open_response(_INNER, corr_id, request) is None
    assert f.open_transmission(_INNER, corr_id, answer) is None


@given(s.mutated(_transmissions.map(f.encode_fwd_transmission)))
def test_total(data: bytes) -> None:
    value = f.decode_fwd_transmission(data)
    if value is not None:
        assert f.encode_fwd_transmission(value) == data
    response = f.decode_fwd_response(data)
    if response is not None:
        assert f.encode_fwd_response(response) == data
