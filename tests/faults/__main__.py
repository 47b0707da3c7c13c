"""`make faults`: many runs, a seed each, a few at a time. Prints the schedule and the findings of those that fail.

A failing seed keeps its directory (history, logs) under build/faults. `make faults SEED=n RUNS=1` repeats its schedule;
how processes and packets interleave is never the same twice.
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
from tests.faults.plan import FAULTS, KINDS, kind_of, make_plan
from tests.faults.world import faketime

ROOT = Path(__file__).parents[2]
KEPT = ROOT / "build" / "faults"
_RUNS, _HELD = "runs", "runs that held"
_AROUND = 240.0  # seconds that a run may take besides its faults


async def run(seed: int, seconds: float, options: Sequence[str] = ()) -> tuple[bool, str]:
    """Whether it held, and what it printed."""
    directory = Path(tempfile.mkdtemp(prefix=f"weir-faults-{seed}-"))
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.faults.run", *options, str(seed), str(seconds), str(directory)),
        cwd=ROOT,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        preexec_fn=die_with_parent,
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
    kept = KEPT / f"seed-{seed}"
    shutil.rmtree(kept, ignore_errors=True)
    kept.parent.mkdir(parents=True, exist_ok=True)
    shutil.move(directory, kept)
    if f"seed {seed}" not in text:  # it ended before it could say so
        text = f"seed {seed}: {kind_of(seed)}\n{text}"
    return False, f"{text}  kept in {kept}\n"


async def run_all(seeds: Sequence[int], seconds: float, jobs: int, only: Sequence[str]) -> list[int]:
    """Return the seeds that failed."""
    failed: list[int] = []
    counts: Counter[tuple[str, str]] = Counter()  # (kind of Redis, what) → how often
    waiting = iter(seeds)

    async def work() -> None:
        for seed in waiting:
            held, text = await run(seed, seconds, [f"--only={kind}" for kind in only])
            kind, plan = kind_of(seed), make_plan(seed, seconds, only=only, clocks=faketime() is not None)
            counts.update((kind, fault.what) for fault in plan)
            counts[kind, _RUNS] += 1
            counts[kind, _HELD] += held
            if held:
                print(f"seed {seed}: {kind}, {len(plan)} faults, held", flush=True)
            else:
                failed.append(seed)
                print(text, end="", flush=True)

    await asyncio.gather(*(work() for _ in range(jobs)))
    print("\n".join(table(counts)))
    return sorted(failed)


def table(counts: Counter[tuple[str, str]]) -> list[str]:
    """Runs and faults by kind of Redis, as in docs/reliability.md."""
    lines = [f"| | {' | '.join(KINDS)} |", "|---" * (len(KINDS) + 1) + "|"]
    for what in (_RUNS, _HELD, *FAULTS):
        lines.append(f"| {what} | {' | '.join(str(counts[kind, what]) for kind in KINDS)} |")
    return lines


def main() -> int:
    parser = argparse.ArgumentParser(prog="make faults", description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=10.0, help="time in which things fail, of each run")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only", action="append", default=[], choices=FAULTS, help="a kind of fault that may happen")
    args = parser.parse_args()
    if not enter():
        print(NO_NAMESPACES)
        return 2
    if faketime() is None:
        print("clock faults are left out: libfaketime is not installed (Debian: apt install faketime)")
    seeds = range(args.seed, args.seed + args.runs)
    failed = asyncio.run(run_all(seeds, args.seconds, args.jobs, args.only))
    if failed:
        print(f"{len(failed)} of {args.runs} runs failed: seeds {', '.join(map(str, failed))}")
        return 1
    print(f"{args.runs} runs held")
    return 0


if __name__ == "__main__":
    sys.exit(main())
