"""Fuzz the decoders for a while: `python -m tests.fuzz.run --seconds 60 [--jobs N] [names]`.

An input that crashes a decoder is put into tests/fuzz/regressions, where the tests find it from then on.
"""

import argparse
import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.fuzz.harnesses import HARNESSES
from tests.fuzz.seeds import CORPUS

HERE = Path(__file__).parent
REGRESSIONS = HERE / "regressions"
WORK = HERE.parent.parent / "build" / "fuzz"
_LONGEST_INPUT = 16384


def fuzz(name: str, seconds: int) -> tuple[str, bool, str]:
    """(harness, whether it held, its last words)."""
    work, crashes = WORK / name, WORK / f"{name}-crashes"
    for directory in (work, crashes):
        directory.mkdir(parents=True, exist_ok=True)
    command = [
        *(sys.executable, "-m", "tests.fuzz.one", name, str(work), str(CORPUS / name)),
        *(f"-max_total_time={seconds}", f"-max_len={_LONGEST_INPUT}", "-timeout=10", "-rss_limit_mb=2048"),
        *(f"-artifact_prefix={crashes}/", f"-dict={HERE / 'words.dict'}", "-print_final_stats=1"),
    ]
    done = subprocess.run(
        command, cwd=HERE.parent.parent, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    for crash in crashes.iterdir():
        (REGRESSIONS / name).mkdir(parents=True, exist_ok=True)
        shutil.move(crash, REGRESSIONS / name / crash.name)
    runs = [line.split()[-1] for line in done.stdout.splitlines() if line.startswith("stat::number_of_executed_units")]
    said = f"{runs[0]} inputs" if runs and not done.returncode else done.stdout[-3000:]
    return name, done.returncode == 0, said


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.run")
    parser.add_argument("--seconds", type=int, default=60, help="for each decoder (60)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="how many at once")
    parser.add_argument("names", nargs="*", metavar="name", help=f"of {', '.join(HARNESSES)}; all when none is given")
    options = parser.parse_args(arguments)
    unknown = set(options.names) - HARNESSES.keys()
    if unknown:
        parser.error(f"no harness is called {', '.join(sorted(unknown))}")
    names = options.names or list(HARNESSES)
    failed = 0
    with ThreadPoolExecutor(options.jobs) as pool:
        for name, held, said in pool.map(lambda one: fuzz(one, options.seconds), names):
            print(f"{'ok    ' if held else 'FAILED'} {name}: {said}", flush=True)
            failed += not held
    if failed:
        print(f"{failed} decoder(s) failed; the inputs are in {REGRESSIONS}, and `make test` replays them")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
