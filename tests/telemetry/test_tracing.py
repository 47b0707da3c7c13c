"""The null span and the null tracer: every call is allowed, and nothing is recorded or allocated."""

import subprocess
import sys

from weir.telemetry.setup import open_tracing
from weir.telemetry.tracing import NULL_SPAN, NULL_TRACER


def test_tracing_is_off_unless_a_collector_is_configured() -> None:
    assert open_tracing(None, ratio=1, instance="x") is NULL_TRACER


def test_the_null_tracer_only_returns_the_null_span() -> None:
    assert not NULL_TRACER.recording and NULL_TRACER.sample("SEND") is NULL_SPAN
    assert NULL_TRACER.sample("SEND", always=True) is NULL_SPAN
    assert NULL_TRACER.start("MSG", NULL_SPAN, links=[bytes(25)]) is NULL_SPAN
    NULL_TRACER.flush()
    NULL_TRACER.close()


def test_the_null_span_takes_every_call() -> None:
    assert NULL_SPAN.child("store.send") is NULL_SPAN
    assert NULL_SPAN.context() == b"" and not NULL_SPAN.recording
    NULL_SPAN.set("count", 1)
    NULL_SPAN.end("AUTH")
    NULL_SPAN.end()


def test_the_sdk_is_not_imported_while_tracing_is_off() -> None:
    code = """
import sys
from weir.telemetry.setup import open_tracing
open_tracing(None, ratio=1, instance="x")
assert not [name for name in sys.modules if name.startswith("opentelemetry")]
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=30)
