#!/usr/bin/python3.11
"""The `weir` command in the image that Tilt runs: a parent process that restarts the real command on SIGUSR2.

Tilt copies changed files into /tmp/weir (an emptyDir, because the root file system is read-only) and sends the signal.
The container itself must not restart: Tilt would see a new container and build the image again. A process other than
number 1 (`kubectl exec … weir ping`) runs the real command directly.
"""

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import FrameType

INSTALLED = Path(os.environ.get("WEIR_INSTALLED", "/usr/local/lib/python3.11/dist-packages"))
SYNCED = Path(os.environ.get("WEIR_SYNCED", "/tmp/weir"))
STOP_SECONDS = 20
COMMAND = [sys.executable, "-c", "import sys; from weir.cli.main import main; sys.exit(main())"]


def copy_packages() -> None:
    """Copy the installed packages to the place of the synced files, because Tilt sends only changed files."""
    for folder, package in (("services", "weir"), ("operator", "weir_operator")):
        target = SYNCED / folder / package
        if not target.exists():
            shutil.copytree(INSTALLED / package, target, ignore=shutil.ignore_patterns("__pycache__"))


class Parent:
    def __init__(self, arguments: list[str]) -> None:
        self.command = [*COMMAND, *arguments]
        self.reload = self.stopping = False

    def start(self) -> None:
        self.child = subprocess.Popen(self.command)

    def on_signal(self, number: int, _frame: FrameType | None) -> None:
        if number == signal.SIGUSR2:
            if self.command[len(COMMAND) :][:1] == ["redis"]:
                return  # Redis does not run the code that changes
            self.reload = True
            number = signal.SIGTERM
        elif number in (signal.SIGTERM, signal.SIGINT):
            self.stopping = True
        if self.child.poll() is None:
            self.child.send_signal(number)

    def end_child(self) -> int:
        """Wait until the child ends. During a reload, kill it after STOP_SECONDS."""
        while True:
            try:
                return self.child.wait(STOP_SECONDS if self.reload else 0.5)
            except subprocess.TimeoutExpired:
                if self.reload:
                    self.child.kill()

    def run(self) -> int:
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR2):
            signal.signal(number, self.on_signal)
        self.start()
        reloads = 0
        while True:
            code = self.end_child()
            if self.stopping or (not self.reload and not reloads):
                return code
            if not self.reload:
                print(f"reload: the command ended with {code}; waiting for the next change", flush=True)
            while not self.reload and not self.stopping:
                time.sleep(0.2)
            if self.stopping:
                return code
            self.reload = False
            reloads += 1
            print(f"reload: {reloads}", flush=True)
            self.start()


def main() -> int:
    if os.getpid() != 1 and "WEIR_RELOAD_ALWAYS" not in os.environ:
        os.execv(COMMAND[0], [*COMMAND, *sys.argv[1:]])
    copy_packages()
    code = Parent(sys.argv[1:]).run()
    return 128 - code if code < 0 else code


if __name__ == "__main__":
    sys.exit(main())
