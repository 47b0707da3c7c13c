"""Failures of the connection to Redis, as its callers see them."""

from typing import Final


class Unavailable(Exception):
    """Redis did not answer in time, or answered an error.

    Hot calls pass UNAVAILABLE to their callback. Cold calls raise Unavailable or, for an answered error, ReplyError.
    """


UNAVAILABLE: Final = Unavailable("the store did not answer in time")


class StoreError(Exception):
    """Redis cannot be used as configured. The text is one line for the operator of the fleet."""
