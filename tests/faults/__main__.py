"""`make faults`: many runs, a seed each, a few at a time. Prints the schedule and the findings of those that fail.

A failing seed keeps its directory (schedule, history, logs) under build/faults. `make faults SEED=n RUNS=1` repeats its
schedule; how processes and packets interleave is never the same twice. A schedule that found a fault of the router is
kept as a file in tests/faults/found.
"""

from __future__ import annotations

import argparse
import asyncio
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from tests.chaos.processes import die_with_parent
from tests.faults.network import NO_NAMESPACES, enter
from tests.faults.plan import FAULTS, KINDS, Plan, make_plan, read_plan
from tests.faults.world import faketime

ROOT = Path(__file__).parents[2]
KEPT = ROOT / "build" / "faults"
_RUNS, _HELD = "runs", "runs that held"
_AROUND = 240.0  # seconds that a run may take besides its faults


async def run(plan: Plan, seconds: float, options: Sequence[str] = ()) -> tuple[bool, str]:
    """Whether it held, and what it printed."""
    directory = Path(tempfile.mkdtemp(prefix=f"weir-faults-{plan.seed}-"))
    schedule = directory / "schedule"
    schedule.write_text(f"{plan}\n")
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.faults.run", *options, str(schedule), str(seconds), str(directory)),
        cwd=ROOT,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        preexec_fn=die_with_parent,
        start_new_session=True,  # Linux shares the CPU between sessions: a run has as much as each of its edges
    )
    try:
        async with asyncio.timeout(seconds + _AROUND):
            output, _ = await process.communicate()
    except TimeoutError:
        process.kill()
        output = f"  WRONG: the run did not end in {seconds + _AROUND:.0f} s\n".encode()
    except asyncio.CancelledError:
        process.kill()
        raise
    text = output.decode(errors="replace")
    if process.returncode == 0:
        shutil.rmtree(directory, ignore_errors=True)
        return True, text
    kept = KEPT / f"seed-{plan.seed}"
    shutil.rmtree(kept, ignore_errors=True)
    kept.parent.mkdir(parents=True, exist_ok=True)
    shutil.move(directory, kept)
    if f"seed {plan.seed}" not in text:  # it ended before it could say so
        text = f"{plan}\n{text}"
    return False, f"{text}  kept in {kept}\n"


async def run_all(plans: Sequence[Plan], seconds: float, jobs: int) -> list[int]:
    """Return the seeds that failed."""
    failed: list[int] = []
    counts: Counter[tuple[str, str]] = Counter()  # (kind of Redis, what) → how often
    waiting = iter(plans)

    async def work() -> None:
        for plan in waiting:
            held, text = await run(plan, seconds)
            counts.update((plan.redis, fault.what) for fault in plan.faults)
            counts[plan.redis, _RUNS] += 1
            counts[plan.redis, _HELD] += held
            if held:
                print(f"seed {plan.seed}: {plan.redis}, {len(plan.faults)} faults, held", flush=True)
            else:
                failed.append(plan.seed)
                print(text, end="", flush=True)

    await asyncio.gather(*(work() for _ in range(jobs)))
    print("\n".join(table(counts)))
    return sorted(failed)


def table(counts: Counter[tuple[str, str]]) -> list[str]:
    """Runs and faults by kind of Redis, as in docs/reliability.md."""
    lines = [f"| | {' | '.join(KINDS)} |", "|---" * (len(KINDS) + 1) + "|"]
    for what in (_RUNS, _HELD, *FAULTS):
        on = FAULTS[what].on if what in FAULTS else KINDS
        lines.append(f"| {what} | {' | '.join(str(counts[kind, what]) if kind in on else '–' for kind in KINDS)} |")
    return lines


def main() -> int:
    parser = argparse.ArgumentParser(prog="make faults", description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=10.0, help="time in which things fail, of each run")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only", action="append", default=[], choices=FAULTS, help="a kind of fault that may happen")
    parser.add_argument("--plan", type=Path, help="a file with a schedule, instead of those of seeds")
    args = parser.parse_args()
    if not enter():
        print(NO_NAMESPACES)
        return 2
    clocks = faketime() is not None
    if not clocks:
        print("clock faults are left out: libfaketime is not installed (Debian: apt install faketime)")
    if args.plan:
        plans = [read_plan(args.plan.read_text())] * args.runs
    else:
        seeds = range(args.seed, args.seed + args.runs)
        plans = [make_plan(seed, args.seconds, only=args.only, clocks=clocks) for seed in seeds]
    failed = asyncio.run(run_all(plans, args.seconds, args.jobs))
    if failed:
        print(f"{len(failed)} of {args.runs} runs failed: seeds {', '.join(map(str, failed))}")
        return 1
    print(f"{args.runs} runs held")
    return 0


if __name__ == "__main__":
    sys.exit(main())
