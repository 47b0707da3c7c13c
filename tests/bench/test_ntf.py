"""The benches of the notification router run, and measure what they say."""

import pytest

from weir.bench.ntf.commands import CommandsOptions, run_commands
from weir.bench.ntf.push import PushOptions, run_push
from weir.bench.ntf.subscribe import NtfSubscribeOptions, run_ntf_subscribe

pytestmark = pytest.mark.all("starts whole routers")


def test_pushes() -> None:
    result = run_push(PushOptions(tokens=20, seconds=1.0, warmup=0.5, window=8))
    assert result.pushes > 20
    assert 0 < result.send_to_push_p50_ms <= result.send_to_push_p99_ms
    assert result.replica_us > 0 and result.redis_us > 0


def test_commands() -> None:
    result = run_commands(CommandsOptions(tokens=50, subscriptions=100, connections=2))
    assert result.tokens_per_cpu_s > 0 and result.subscriptions_per_cpu_s > 0


def test_subscribing() -> None:
    result = run_ntf_subscribe(NtfSubscribeOptions(few=50, many=300, one_by_one=300))
    assert result.few_active_ms > 0 and result.many_active_ms > 0
    assert result.nsub_per_s > 0 and result.sub_per_s > 0
