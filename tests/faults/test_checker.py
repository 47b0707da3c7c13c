"""The checker finds every kind of violation in a history made by hand, and lets pass what may happen."""

import hashlib

import pytest

from tests.faults.checker import check
from tests.faults.history import Line

_NUMBERS = {"queue", "conn", "op", "count"}
ID = b"queue one"
NEW_ID = b"queue two"
HASH = hashlib.md5(ID, usedforsecurity=False).hexdigest()
NEW_HASH = hashlib.md5(NEW_ID, usedforsecurity=False).hexdigest()
BOTH = f"{int(HASH, 16) ^ int(NEW_HASH, 16):032x}"


def line(text: str) -> Line:
    """`is key=value …`; `call NAME`, `done RESULT` and `event NAME` in short."""
    kind, *words = text.split()
    made: Line = {"is": kind, "at": 0.0}
    if kind in ("call", "event"):
        made["name"] = words.pop(0)
    elif kind == "done":
        made["result"] = words.pop(0)
    for word in words:
        name, _, value = word.partition("=")
        made[name] = int(value) if name in _NUMBERS else {"yes": True, "no": False}.get(value, value)
    if made.get("name") in ("SEND", "MSG"):
        made["value"] = int(made["value"])
    if kind in ("call", "event") and made["name"] not in ("NEW", "SUBS", "ENDS", "ALLS"):
        made.setdefault("queue", 1)
    return made


START = [
    f"queue queue=1 id={ID.hex()} service= key=k0",
    "open conn=1 service=",
    "open conn=2 service=",
    "open conn=9 service=",
]
SENT = ["call SEND op=1 conn=9 value=1", "done ok op=1"]
SUBSCRIBED = ["call SUB op=2 conn=1", "done ok op=2"]
GOT = [*SENT, *SUBSCRIBED, "event MSG conn=1 message=aa value=1"]
ACKED = [*GOT, "call ACK op=3 conn=1 message=aa", "done ok op=3"]
END = ["exists queue=1 exists=yes", "drained"]
ALIVE = ["alive conn=1", "alive conn=2"]
TAKEN = [*SUBSCRIBED, "call SUB op=4 conn=2", "done ok op=4"]
MADE = ["call NEW op=5 conn=1", "done ok op=5", f"queue queue=2 id={NEW_ID.hex()} service= key=k1 op=5"]
SERVICE = [
    f"queue queue=1 id={ID.hex()} service=s key=k0",
    *("open conn=1 service=s", "open conn=2 service=s", "open conn=9 service="),
    *("call SUBS op=2 conn=1", "done ok op=2", "event ALLS conn=1 service=s"),
]

TOGETHER = [*SENT, "call SUB op=2 conn=1", "call SUB op=4 conn=1", "done ok op=2", "done ok op=4"]
TWICE = [*TOGETHER, "event MSG conn=1 message=aa value=1", "event MSG conn=1 message=aa value=1"]

FINE = {
    "a message with each of two SUBs that were under way together": [
        *(*TWICE, "call ACK op=3 conn=1 message=aa", "done ok op=3", *END)
    ],
    "one message": [*ACKED, *END],
    "a message to the next subscriber, without an ACK": [
        *GOT,
        *("call SUB op=4 conn=2", "done ok op=4", "event END conn=1", "event MSG conn=2 message=aa value=1"),
        *("call ACK op=5 conn=1 message=aa", "done refused op=5 error=NO_MSG", *END),
    ],
    "a message that was under way to the former subscriber": [
        *SENT,
        *TAKEN,
        *("event MSG conn=2 message=aa value=1", "call ACK op=5 conn=2 message=aa", "done ok op=5"),
        *("event MSG conn=1 message=aa value=1", "event END conn=1", *END),
    ],
    "a GET that began before the ACK": [
        *SENT,
        *("call GET op=5 conn=1", "call GET op=6 conn=2", "done ok op=5", "event MSG conn=1 message=aa value=1 op=5"),
        *("call ACK op=7 conn=1 message=aa", "done ok op=7", "done ok op=6"),
        *("event MSG conn=2 message=aa value=1 op=6", *END),
    ],
    "a SEND without an answer that was executed late": [
        *("call SEND op=5 conn=9 value=5", "done unknown op=5", *ACKED),
        *("event MSG conn=1 message=bb value=5", *END),
    ],
    "a SEND without an answer that was never executed": ["call SEND op=5 conn=9 value=5", "done unknown op=5", *END],
    "a SUB without an answer that brings a message": [
        *(*SENT, "call SUB op=2 conn=1", "done unknown op=2", "event MSG conn=1 message=aa value=1", *END),
    ],
    "a message between END and the answer to the second SUB": [
        *(*SENT, *SUBSCRIBED, "call SUB op=6 conn=2", "call SUB op=4 conn=1", "event END conn=1"),
        *("event MSG conn=1 message=aa value=1", "done ok op=4", *END),
    ],
    "again after its ACK was refused": [
        *(*GOT, "call ACK op=3 conn=1 message=aa", "done refused op=3 error=NO_MSG"),
        *("event MSG conn=1 message=aa value=1", "call ACK op=4 conn=1 message=aa", "done ok op=4", *END),
    ],
    "again after another SUB": [
        *GOT,
        "call SUB op=4 conn=1",
        "done ok op=4",
        "event MSG conn=1 message=aa value=1",
        *END,
    ],
    "again while another SUB is answered": [
        *GOT,
        *("call SUB op=4 conn=1", "event MSG conn=1 message=aa value=1", "done ok op=4"),
        *("event MSG conn=1 message=aa value=1", *END),
    ],
    "a lost message of a queue that was deleted": [
        *(*SENT, "call DEL op=5 conn=2", "done unknown op=5", "exists queue=1 exists=no", "drained"),
    ],
    "a DEL without an answer that was not executed": [
        *(*SUBSCRIBED, "call DEL op=5 conn=2", "done unknown op=5", *ALIVE, "settled", *END),
    ],
    "a subscriber that hears DELD": [
        *(*SUBSCRIBED, "call DEL op=5 conn=2", "done unknown op=5", "event DELD conn=1", *ALIVE, "settled"),
        *("exists queue=1 exists=no", "drained"),
    ],
    "a subscriber whose second SUB is refused": [
        *(*SUBSCRIBED, "call SUB op=4 conn=1", "call DEL op=5 conn=2", "done ok op=5"),
        *("done refused op=4 error=AUTH", *ALIVE, "settled", "exists queue=1 exists=no"),
    ],
    "a subscriber that deleted the queue itself": [
        *(*SUBSCRIBED, "call DEL op=5 conn=1", "done unknown op=5", *ALIVE, "settled", "exists queue=1 exists=no"),
    ],
    "a SEND to a queue that was deleted": [
        *("call DEL op=5 conn=2", "done unknown op=5", "call SEND op=6 conn=9 value=3", "done refused op=6 error=AUTH"),
    ],
    "two subscribers, of which one has left": [*TAKEN, *ALIVE, "close conn=1", "settled", *END],
    "two subscribers, of which one heard END": [*TAKEN, "event END conn=1", *ALIVE, "settled", *END],
    "a new queue": [
        *(
            *MADE,
            "call SEND op=6 conn=9 queue=2 value=1",
            "done ok op=6",
            "event MSG conn=1 queue=2 message=aa value=1",
        ),
        *("exists queue=2 exists=yes", "drained"),
    ],
    "a NEW without an answer": ["call NEW op=5 conn=1", "done unknown op=5", *END],
    "a key without an answer that was set": [
        *("call RKEY op=5 conn=1 writes=key value=k1", "done unknown op=5", "holds queue=1 what=key value=k1"),
    ],
    "a key without an answer that was not set": [
        *("call RKEY op=5 conn=1 writes=key value=k1", "done unknown op=5", "holds queue=1 what=key value=k0"),
    ],
}

WRONG = {
    "lost": ([*SENT, *END], "message 1 is lost"),
    "nobody sent it": ([*SUBSCRIBED, "event MSG conn=1 message=aa value=7"], "nobody sent it"),
    "stored twice": ([*ACKED, "event MSG conn=1 message=bb value=1", *END], "was stored twice"),
    "two messages with one id": (
        [*GOT, "call SEND op=6 conn=9 value=2", "call SUB op=7 conn=1", "event MSG conn=1 message=aa value=2"],
        "was stored twice",
    ),
    "refused and delivered": (
        [*SUBSCRIBED, "call SEND op=5 conn=9 value=5", "done refused op=5", "event MSG conn=1 message=aa value=5"],
        "was delivered, and its SEND was refused",
    ),
    "delivered and then refused": (
        [*SUBSCRIBED, "call SEND op=5 conn=9 value=5", "event MSG conn=1 message=aa value=5", "done refused op=5"],
        "was delivered, and its SEND was refused",
    ),
    "again on the connection that acknowledged it": (
        [*ACKED, "call SUB op=5 conn=1", "done ok op=5", "event MSG conn=1 message=aa value=1", *END],
        "again to connection 1 after its ACK",
    ),
    "to a subscription after the ACK": (
        [*ACKED, "call SUB op=5 conn=2", "done ok op=5", "event MSG conn=2 message=aa value=1", *END],
        "connection 2, which subscribed after its ACK",
    ),
    "to a GET after the ACK": (
        [*ACKED, "call GET op=5 conn=2", "done ok op=5", "event MSG conn=2 message=aa value=1 op=5", *END],
        "connection 2, which subscribed after its ACK",
    ),
    "three times to two SUBs": ([*TWICE, "event MSG conn=1 message=aa value=1"], "came twice to one subscription"),
    "twice after an ACK that was refused": (
        [
            *(*GOT, "call ACK op=3 conn=1 message=aa", "done refused op=3 error=NO_MSG"),
            *("event MSG conn=1 message=aa value=1", "event MSG conn=1 message=aa value=1"),
        ],
        "came twice to one subscription",
    ),
    "twice to one subscription, and its ACK has no answer": (
        [*GOT, "call ACK op=3 conn=1 message=aa", "done unknown op=3", "event MSG conn=1 message=aa value=1"],
        "came twice to one subscription",
    ),
    "twice to one subscription": ([*GOT, "event MSG conn=1 message=aa value=1"], "came twice to one subscription"),
    "to a connection that is not subscribed": ([*SENT, "event MSG conn=1 message=aa value=1"], "is not subscribed"),
    "after END": (
        [*SENT, *TAKEN, "event END conn=1", "event MSG conn=1 message=aa value=1", *END],
        "is not subscribed",
    ),
    "out of order": (
        [
            *(*SENT, *SUBSCRIBED, "call SEND op=5 conn=9 value=2", "done ok op=5"),
            *("event MSG conn=1 message=bb value=2", "event MSG conn=1 message=aa value=1", *END),
        ],
        "message 2 came before message 1",
    ),
    "an unanswered one out of order": (
        [
            *(*SENT, *SUBSCRIBED, "call SEND op=5 conn=9 value=2", "done unknown op=5"),
            *("event MSG conn=1 message=bb value=2", "event MSG conn=1 message=aa value=1", *END),
        ],
        "message 2 came before message 1",
    ),
    "there after its DEL": (["call DEL op=5 conn=2", "done ok op=5", *END], "exists after a DEL"),
    "gone without a DEL": (["exists queue=1 exists=no"], "is gone, and nobody deleted it"),
    "gone after a refused DEL": (
        ["call DEL op=5 conn=2", "done refused op=5 error=CMD", "exists queue=1 exists=no"],
        "is gone, and nobody deleted it",
    ),
    "refused without a DEL": (
        ["call SEND op=6 conn=9 value=3", "done refused op=6 error=AUTH"],
        "SEND was refused, and nobody deleted the queue",
    ),
    "refused, although it is there": (
        [
            *("call DEL op=5 conn=2", "done unknown op=5", "call SEND op=6 conn=9 value=3"),
            *("done refused op=6 error=AUTH", "exists queue=1 exists=yes"),
        ],
        "exists after a command that was refused",
    ),
    "no DELD": (
        [*SUBSCRIBED, "call DEL op=5 conn=2", "done unknown op=5", *ALIVE, "settled", "exists queue=1 exists=no"],
        "its subscriber 1 did not hear DELD",
    ),
    "DELD of a queue that is there": (
        [*SUBSCRIBED, "call DEL op=5 conn=2", "done unknown op=5", "event DELD conn=1", *ALIVE, "settled", *END],
        "connection 1 heard DELD, and the queue exists",
    ),
    "DELD without a DEL": ([*SUBSCRIBED, "event DELD conn=1"], "heard DELD, and nobody deleted the queue"),
    "two subscribers": ([*TAKEN, *ALIVE, "settled", *END], "connections [1, 2] believe"),
    "no probe": (
        [
            *(*SUBSCRIBED, *ALIVE, "call SEND op=5 conn=9 value=5 probe=yes", "done ok op=5", "settled"),
            *("close conn=1", "call SUB op=6 conn=2", "done ok op=6", "event MSG conn=2 message=aa value=5", *END),
        ],
        "its subscriber 1 did not get the probe",
    ),
    "a message that is stuck": (
        [*SENT, *SUBSCRIBED, *ALIVE, "rested", "event MSG conn=1 message=aa value=1", *END],
        "its subscriber 1 did not get messages [1]",
    ),
    "a new queue that is gone": ([*MADE, "exists queue=2 exists=no"], "queue 2 is gone, and nobody deleted it"),
    "a new queue with two subscribers": (
        [*MADE, "call SUB op=6 conn=2 queue=2", "done ok op=6", *ALIVE, "settled"],
        "queue 2: connections [1, 2] believe",
    ),
    "a refused NEW": (["call NEW op=5 conn=1", "done refused op=5 error=AUTH"], "NEW of connection 1 was refused"),
    "END without a cause": (
        [*SUBSCRIBED, "event END conn=1"],
        "queue 1: connection 1 heard END, and nobody else subscribed",
    ),
    "END after a SUB that was answered before": (
        ["call SUB op=4 conn=2", "done ok op=4", *SUBSCRIBED, "event END conn=1"],
        "queue 1: connection 1 heard END, and nobody else subscribed",
    ),
    "END twice": (
        [*TAKEN, "event END conn=1", "event END conn=1"],
        "queue 1: connection 1 heard END, and is not subscribed",
    ),
    "an old key": (
        ["call RKEY op=5 conn=1 writes=key value=k1", "done ok op=5", "holds queue=1 what=key value=k0"],
        "its key is 'k0', not one of ['k1']",
    ),
    "a notifier that was deleted": (
        [
            *("call NKEY op=5 conn=1 writes=notifier value=n1", "done ok op=5"),
            *("call NDEL op=6 conn=1 writes=notifier value=", "done ok op=6", "holds queue=1 what=notifier value=n1"),
        ],
        "its notifier is 'n1'",
    ),
}

SERVICE_FINE = {
    "count and hash": [f"totals service=s count=1 hash={HASH}"],
    "without a queue whose DEL is unanswered, and is gone": [
        *("call DEL op=5 conn=9", "done unknown op=5", "exists queue=1 exists=no"),
        f"totals service=s count=0 hash={'0' * 32}",
    ],
    "another connection took over": [
        *("call SUBS op=5 conn=2", "done ok op=5", "event ENDS conn=1 service=s", "event ALLS conn=2 service=s"),
        *(*ALIVE, "settled"),
    ],
    "a message to a connection whose NEW takes the service over": [
        *(*SENT, "call NEW op=5 conn=2", "event MSG conn=2 message=aa value=1", "event ENDS conn=1 service=s"),
        *("done unknown op=5", *END),
    ],
    "a new queue of the service": [
        *("call NEW op=5 conn=1", "done ok op=5", f"queue queue=2 id={NEW_ID.hex()} service=s key=k1 op=5"),
        f"totals service=s count=2 hash={BOTH}",
    ],
    "the answer to an ACK that left before ENDS came": [
        *(*SENT, "event MSG conn=1 message=aa value=1", "call SEND op=5 conn=9 value=2", "done ok op=5"),
        *("call ACK op=6 conn=1 message=aa", "call SUBS op=7 conn=2", "event ENDS conn=1 service=s", "done ok op=6"),
        *("event MSG conn=1 message=bb value=2 op=6", *END),
    ],
    "the answer to an ACK of the former subscription, and the same message to the next one": [
        *(*SENT, "event MSG conn=1 message=aa value=1", "call SEND op=5 conn=9 value=2", "done ok op=5"),
        *("call NEW op=6 conn=1", "call ACK op=7 conn=1 message=aa", "call SUBS op=8 conn=2"),
        *("event ENDS conn=1 service=s", "done ok op=6", "done ok op=7", "event MSG conn=1 message=bb value=2 op=7"),
        *("event MSG conn=1 message=bb value=2", *END),
    ],
    "a probe": [
        *(*ALIVE, "call SEND op=5 conn=9 value=5 probe=yes", "done ok op=5"),
        *("event MSG conn=1 message=aa value=5", "settled", *END),
    ],
}
SERVICE_WRONG = {
    "count": ([f"totals service=s count=2 hash={HASH}"], "service s: SUBS answers (2,"),
    "hash": ([f"totals service=s count=1 hash={'0' * 31}1"], "service s: SUBS answers (1,"),
    "two owners": (
        ["call SUBS op=5 conn=2", "done ok op=5", "event ALLS conn=2 service=s", *ALIVE, "settled"],
        "service s: connections [1, 2]",
    ),
    "ENDS without a cause": (
        ["event ENDS conn=1 service=s"],
        "service s: connection 1 heard ENDS, and nobody else subscribed",
    ),
    "ENDS twice": (
        ["call SUBS op=5 conn=2", "event ENDS conn=1 service=s", "event ENDS conn=1 service=s"],
        "service s: connection 1 heard ENDS, and is not subscribed",
    ),
    "no ALLS": (
        [
            *("call SUBS op=4 conn=2", "done ok op=4", "event ENDS conn=1 service=s", "close conn=2"),
            *("call SUBS op=5 conn=1", "done ok op=5", *ALIVE, "settled"),
        ],
        "connection 1 did not get ALLS",
    ),
    "without its new queue": (
        [
            *("call NEW op=5 conn=1", "done ok op=5", f"queue queue=2 id={NEW_ID.hex()} service=s key=k1 op=5"),
            f"totals service=s count=1 hash={HASH}",
        ],
        "service s: SUBS answers (1,",
    ),
    "no probe": (
        [*ALIVE, "call SEND op=5 conn=9 value=5 probe=yes", "done ok op=5", "settled", "exists queue=1 exists=yes"],
        "its subscriber 1 did not get the probe",
    ),
    "a message after ENDS": (
        [*SENT, "call SUBS op=7 conn=2", "event ENDS conn=1 service=s", "event MSG conn=1 message=aa value=1"],
        "connection 1, which is not subscribed",
    ),
    "a message after DELD": (
        [*SENT, "call DEL op=5 conn=9", "event DELD conn=1", "event MSG conn=1 message=aa value=1"],
        "connection 1, which is not subscribed",
    ),
}


def problems(start: list[str], lines: list[str]) -> list[str]:
    return check(line(text) for text in [*start, *lines])


@pytest.mark.parametrize("name", FINE)
def test_may_happen(name: str) -> None:
    assert problems(START, FINE[name]) == []


@pytest.mark.parametrize("name", SERVICE_FINE)
def test_may_happen_to_a_service(name: str) -> None:
    assert problems(SERVICE, SERVICE_FINE[name]) == []


@pytest.mark.parametrize("name", WRONG)
def test_must_not_happen(name: str) -> None:
    lines, expected = WRONG[name]
    assert [expected in problem for problem in problems(START, lines)] == [True], problems(START, lines)


@pytest.mark.parametrize("name", SERVICE_WRONG)
def test_must_not_happen_to_a_service(name: str) -> None:
    lines, expected = SERVICE_WRONG[name]
    assert [expected in problem for problem in problems(SERVICE, lines)] == [True], problems(SERVICE, lines)


def test_an_association_without_an_answer() -> None:
    """The queue belongs to the service or not: both totals are right, and no other."""
    start = [*START, "open conn=3 service=s", "call SUB op=5 conn=3", "done unknown op=5"]
    assert problems(start, [f"totals service=s count=1 hash={HASH}"]) == []
    assert problems(start, [f"totals service=s count=0 hash={'0' * 32}"]) == []
    assert len(problems(start, [f"totals service=s count=2 hash={HASH}"])) == 1
