"""How a run of the tests looks: one line of progress, and at the end one command for each failure that repeats it.

On a terminal the line is rewritten in place. Elsewhere, as in CI's log, a new line is written every ten seconds. The
plugin replaces pytest's dots only; `-v` and `-q` show what they always show.
"""

from __future__ import annotations

import shlex
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

_INTERVAL = {True: 0.1, False: 10.0}  # seconds between two lines, on a terminal and elsewhere


@dataclass(eq=False)  # pytest keeps its plugins in sets
class Progress:
    reporter: Any  # pytest's terminal reporter
    total: int = 0
    done: int = 0
    failed: int = 0
    began: float = 0.0
    shown: float = 0.0

    def line(self, test: str) -> str:
        failed = f", {self.failed} failed" if self.failed else ""
        file = test.partition("::")[0]
        return f"tests: {self.done} of {self.total}{failed}, {time.monotonic() - self.began:.0f} s, {file}"

    def show(self, test: str) -> None:
        now = time.monotonic()
        terminal = bool(self.reporter.isatty)
        if self.done < self.total and now - self.shown < _INTERVAL[terminal]:
            return
        self.shown = now
        if terminal and self.done < self.total:
            self.reporter.rewrite(self.line(test)[: self.reporter._tw.fullwidth - 1], erase=True)
        else:
            self.reporter.rewrite("", erase=terminal)
            self.reporter.write_line(self.line(test))

    @pytest.hookimpl(wrapper=True)
    def pytest_report_teststatus(self) -> Iterator[None]:
        """Take the dot away; the word stays, and pytest counts by the category."""
        category, _, word = yield
        return category, "", word

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        self.total = len(session.items)

    def pytest_xdist_node_collection_finished(self, ids: list[str]) -> None:
        self.total = len(ids)

    def pytest_runtest_logstart(self) -> None:
        self.began = self.began or time.monotonic()
        self.shown = self.shown or self.began

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.failed += report.failed
        self.done += report.when == "teardown"
        self.show(report.nodeid)


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    reporter: Any = config.pluginmanager.getplugin("terminalreporter")
    if reporter is None or hasattr(config, "workerinput") or config.option.verbose != 0:
        return
    reporter.showfspath = False
    reporter._show_progress_info = False
    config.pluginmanager.register(Progress(reporter), "weir-progress")


def pytest_terminal_summary(terminalreporter: Any) -> None:
    failed = [report for category in ("failed", "error") for report in terminalreporter.stats.get(category, [])]
    tests = dict.fromkeys(report.nodeid for report in failed if "::" in report.nodeid)
    if tests:
        terminalreporter.section("to repeat one of the failures")
        for test in tests:
            terminalreporter.write_line(f".venv/bin/python -m pytest {shlex.quote(test)}")


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """Name long and binary values by their length: keys are drawn at random and differ between two processes of a
    run, which must agree on the names of all tests. Besides, no key belongs in a log."""
    if isinstance(val, bytes) and not (len(val) <= 24 and val.isascii() and val.decode().isprintable()):
        return f"{argname}({len(val)} bytes)"
    return None
