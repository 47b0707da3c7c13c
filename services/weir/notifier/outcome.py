"""Outcomes of a push: the answers of a provider, and the fields of them that the store keeps."""

from __future__ import annotations

from dataclasses import dataclass

from weir.wire.ntf.types import InvalidReason


@dataclass(frozen=True, slots=True)
class Delivered:
    """The provider has accepted the push."""


@dataclass(frozen=True, slots=True)
class Invalid:
    """The provider does not know the device token (any more): the token becomes INVALID."""

    reason: InvalidReason | None = None


@dataclass(frozen=True, slots=True)
class RetryLater:
    """The push failed and is to be repeated after so many seconds, or after a growing delay for None."""

    after: float | None = None


@dataclass(frozen=True, slots=True)
class Failed:
    """The push failed for good. The token stays valid, and a later notification is pushed again."""


Outcome = Delivered | Invalid | RetryLater | Failed
