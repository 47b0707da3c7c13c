"""The columns of the reference servers' daily statistics files, in order, without the first column, the date.

The files have no header; the names are those of the reference's counters. A column is made of a counter of the routers
(`sum`), of what is stored at the end of the day (`last`), or of an estimate of what was in use in a period (`active`).
Columns that Weir has nothing for are 0, as some are in the reference (`zero`).
"""

from collections.abc import Iterator
from typing import Final, Literal, NamedTuple

from weir.telemetry.rollups.fields import EVENTS


class DailyColumn(NamedTuple):
    name: str
    how: Literal["sum", "last", "active", "zero"]
    of: str
    """A counter, or a number of what is stored: `queues`, `tokens_day`."""
    text: str


def _sum(program: str, *events: str) -> Iterator[DailyColumn]:
    for event in events:
        yield DailyColumn(event, "sum", event, EVENTS[program][event].text)


def _active(name: str, of: str, text: str) -> Iterator[DailyColumn]:
    for period in ("day", "week", "month"):
        yield DailyColumn(f"{name}_{period}", "active", f"{of}_{period}", f"{text} in use in the {period}")


def _last(name: str, of: str, text: str) -> DailyColumn:
    return DailyColumn(name, "last", of, f"{text}, at the end of the day")


def _zero(name: str, text: str) -> DailyColumn:
    return DailyColumn(name, "zero", "", f"always 0: {text}")


_RELAY: Final = ("pRequests", "pSuccesses", "pErrorsConnect", "pErrorsCompat", "pErrorsOther")
_SERVICE: Final = (
    *("srvAssocNew", "srvAssocDuplicate", "srvAssocUpdated", "srvAssocRemoved"),
    *("srvSubCount", "srvSubDuplicate", "srvSubQueues", "srvSubEnd"),
)
_RESOLVER: Final = ("rslvReqs", "rslvSucc", "rslvNotFound", "rslvResolverErrs", "rslvDisabled")

SMP: Final = (
    *_sum("smp", "qCreated", "qSecured", "qDeletedAll", "msgSent", "msgRecv"),
    *_active("msgQueues", "queues", "queues"),
    *_sum("smp", "msgSentNtf", "msgRecvNtf"),
    *_active("msgQueuesNtf", "notifiers", "queues with notifications"),
    _last("qCount", "queues", "queues stored"),
    _last("msgCount", "messages", "messages stored"),
    *_sum("smp", "msgExpired", "qDeletedNew", "qDeletedSecured"),
    *(
        column
        for group in ("pRelays", "pRelaysOwn", "pMsgFwds", "pMsgFwdsOwn")
        for column in _sum("smp", *(f"{group}_{name}" for name in _RELAY))
    ),
    *_sum("smp", "pMsgFwdsRecv", "qSub", "qSubAuth", "qSubDuplicate", "qSubProhibited"),
    *_sum("smp", "msgSentAuth", "msgSentQuota", "msgSentLarge", "msgNtfs", "msgNtfNoSub", "msgNtfLost"),
    _zero("qSubNoMsg", "the reference has stopped counting subscriptions without a message"),
    *_sum("smp", "msgRecvGet", "msgGet", "msgGetNoMsg", "msgGetAuth", "msgGetDuplicate", "msgGetProhibited"),
    *(
        _zero(f"subscribedQueues_{period}", "the reference has stopped counting subscribed queues")
        for period in ("day", "week", "month")
    ),
    _last("queueCount", "queues", "queues stored"),
    *_sum("smp", "ntfCreated", "ntfDeleted", "ntfSub", "ntfSubAuth", "ntfSubDuplicate"),
    _last("notifierCount", "notifiers", "queues with a notifier"),
    *_sum("smp", "qDeletedAllB", "qSubAllB", "qSubEnd", "qSubEndB", "ntfDeletedB", "ntfSubB", "msgNtfsB"),
    *_sum("smp", "msgNtfExpired"),
    _last("ntfCount", "notifications", "notifications that wait for a notifier"),
    _last("rcvServiceCount", "rcv_services", "services that receive messages"),
    _last("ntfServiceCount", "ntf_services", "services that receive notifications"),
    _last("rcvServiceQueuesCount", "rcv_service_queues", "queues of services that receive messages"),
    _last("ntfServiceQueuesCount", "ntf_service_queues", "queues of services that receive notifications"),
    *(
        column
        for side in ("rcvServices", "ntfServices")
        for column in _sum("smp", *(f"{side}_{name}" for name in _SERVICE))
    ),
    *(_zero(name, "Weir resolves no names") for name in _RESOLVER),
)

NTF: Final = (
    *_sum("ntf", "tknCreated", "tknVerified", "tknDeleted", "subCreated", "subDeleted", "ntfReceived", "ntfDelivered"),
    *_active("tokens", "tokens", "tokens"),
    *_active("subscriptions", "subscriptions", "subscriptions"),
    *_sum("ntf", "tknReplaced", "ntfFailed", "ntfCronDelivered", "ntfCronFailed"),
    *_sum("ntf", "ntfVrfQueued", "ntfVrfDelivered", "ntfVrfFailed", "ntfVrfInvalidTkn"),
)
