"""`weir bench ntf`: all measurements of the notification router, and their bars."""

from dataclasses import replace
from typing import Any

from weir.bench.bars import Show, show_bars
from weir.bench.ntf.commands import CommandsOptions, run_commands
from weir.bench.ntf.push import PushOptions, run_push
from weir.bench.ntf.subscribe import NtfSubscribeOptions, run_ntf_subscribe
from weir.bench.report import keys


def run_ntf(seconds: float, subscriptions: int, show: Show) -> dict[str, Any]:
    push = show("push", keys(run_push(PushOptions(seconds=seconds))))
    commands = show("commands", keys(run_commands(CommandsOptions())))
    options = NtfSubscribeOptions(many=subscriptions)
    options = replace(options, few=min(options.few, subscriptions), one_by_one=min(options.one_by_one, subscriptions))
    subscribe = show("subscribe", keys(run_ntf_subscribe(options)))
    bars: dict[str, tuple[float, str, float]] = {
        "pushes per CPU-second, replicas and Redis": (push["pushes_per_cpu_s"], ">=", 1500),
        f"NSUBS of {options.many:,} notifiers against {options.few:,}": (subscribe["many_against_few"], "<=", 1.3),
        "NSUBs one by one, fraction of SUB's rate": (subscribe["nsub_against_sub"], ">=", 0.8),
    }
    results = {"push": push, "commands": commands, "subscribe": subscribe}
    return results | {"bars": show_bars(bars, show)}
