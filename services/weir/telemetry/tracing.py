"""Spans as the routers see them, with null objects for everything that is not traced.

Most commands are not traced, and most deployments trace nothing. The router still calls the same methods every time:

    span = tracer.sample("SEND", always=client.trace)
    stored = span.child("store.send")
    ...
    stored.end()
    span.end()

`NULL_TRACER` and every sampler that says no return `NULL_SPAN`, one shared object whose methods do nothing. A child of
`NULL_SPAN` is `NULL_SPAN` again, so an untraced command allocates nothing. This module does not import OpenTelemetry:
`weir.telemetry.otel` has the recording classes, and only `open_tracing` loads it.
"""

from __future__ import annotations

from collections.abc import Sequence


class Span:
    """A span that records nothing. A recording span overrides every method."""

    __slots__ = ()

    recording = False

    def context(self) -> bytes:
        """Return the bytes to store with a message or send to another edge; empty if nothing is recorded."""
        return b""

    def child(self, name: str) -> Span:
        """Start a span below this one."""
        return self

    def set(self, name: str, value: int | bool | str) -> None:
        """Set an attribute from the closed vocabulary `weir.telemetry.otel.ATTRIBUTES`."""

    def end(self, error: str | None = None) -> None:
        """End the span, exactly once. `error` is the tag of a protocol error (AUTH, QUOTA, …)."""


class Tracer:
    """A tracer that records nothing. A recording tracer overrides every method."""

    recording = False

    def sample(self, name: str, *, always: bool = False, nonce: bytes = b"") -> Span:
        """Start a root span at random, by the configured ratio, or in any case with `always`; else return NULL_SPAN.

        With a notification's nonce, the nonce decides instead of chance: all routers decide alike.
        """
        return NULL_SPAN

    def begin_notification(self, nonce: bytes, send: Span) -> None:
        """Record the root span of a notification's trace. It links to the SEND that the notification is of."""

    def sample_notification(self, name: str, nonce: bytes) -> Span:
        """Start a span in a notification's trace if the nonce is sampled; else return NULL_SPAN."""
        return NULL_SPAN

    def start(self, name: str, parent: bytes | Span | None = None, links: Sequence[bytes] = ()) -> Span:
        """Start a span without sampling.

        `parent` is a span of this edge, or the context of a span on another edge. Without a parent, or with one that
        records nothing, the new span is a root. `links` are contexts of traces that this span continues.
        """
        return NULL_SPAN

    def flush(self) -> None:
        """Export the spans that wait."""

    def close(self) -> None:
        """Export the spans that wait, and stop."""


NULL_SPAN = Span()
NULL_TRACER = Tracer()
