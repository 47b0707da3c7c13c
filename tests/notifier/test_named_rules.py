"""Every rule of the reference's notification server, and every error of it that Weir avoids, has a test of its name.

The numbers are those of the reference's description of its module, Notifications/Server.
"""

import re
from pathlib import Path

import pytest

BEHAVIOURS = {
    1: "AUTH takes the same time for what exists and what does not",
    2: "TNEW can be repeated; another DH secret gets AUTH",
    3: "SNEW can be repeated; another notifier key gets AUTH",
    4: "nothing is counted for null tokens",
    5: "END counts from the current session only",
    6: "SNEW does not wait for a session with the SMP server",
    7: "a service that is unavailable: queue by queue",
    8: "one retry on a fresh connection to a push service",
    9: "TCRN: 0, or 20 minutes and more",
    10: "all SMP servers are resubscribed at once",
    11: "errors are answered ahead of commands",
    12: "maintenance mode serves nobody",
    13: "resubscription does not hold up the start",
    14: "TNEW repairs the status",
    15: "DELD counts always",
    16: "TRPL makes a new code and keeps the DH key",
    17: "messages need an ACTIVE token; verifications do not",
    18: "mismatches of count and hash are logged only",
    19: "the store is read in pages of 100 batches",
    20: "a store error during the resubscription",
    21: "statistics are aligned to the clock",
    22: "NMSG without a subscription is counted only",
    23: "a delivered verification makes the token CONFIRMED",
    24: "clients are disconnected by inactivity alone",
}
FLAWS = {
    1: "periodic pushes never start for a new token",
    2: "PENDING is never set",
    3: "the service id is not stored",
    4: "a disconnect clears the service id",
    5: "removing a service changes subscriptions that have ended",
    6: "too long payloads are never pushed",
    7: "ERR and SERVICE wait for days",
    8: "stats-rts needs no role",
    9: "a full queue of one provider stops reading",
    10: "one push at a time; a store error at the start ends the process",
}
_TEST = re.compile(r"def (test_\w+)")
_NUMBER = re.compile(r"(behaviour|flaw)_(\d+)(?=_)")


def named() -> set[tuple[str, int]]:
    names = [name for path in Path(__file__).parent.rglob("test_*.py") for name in _TEST.findall(path.read_text())]
    return {(kind, int(number)) for name in names for kind, number in _NUMBER.findall(name)}


@pytest.mark.parametrize(
    ("kind", "number"), [*(("behaviour", number) for number in BEHAVIOURS), *(("flaw", number) for number in FLAWS)]
)
def test_each_has_a_test(kind: str, number: int) -> None:
    assert (kind, number) in named(), (BEHAVIOURS if kind == "behaviour" else FLAWS)[number]


def test_no_test_has_a_number_of_nothing() -> None:
    assert named() == {*(("behaviour", n) for n in BEHAVIOURS), *(("flaw", n) for n in FLAWS)}
