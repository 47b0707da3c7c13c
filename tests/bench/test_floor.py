from weir.bench.floor import FloorOptions, run_floor


def test_floor() -> None:
    result = run_floor(FloorOptions(seconds=0.05))
    assert result.cycles_per_cpu_s > 0
    assert abs(result.us_per_cycle * result.cycles_per_cpu_s - 1e6) < 1
    blocks = 2 * (result.tls_in_us + result.open_block_us) + 3 * (result.tls_out_us + result.seal_block_us)
    assert blocks > 0 and result.verify_send_us > 0 and result.verify_ack_us > 0 and result.encrypt_message_us > 0
