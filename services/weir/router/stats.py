"""Counters of one edge, under the reference's names. The store adds the counts of all edges up.

Times are counted in two forms: in the buckets of /metrics, and in the logarithmic buckets of rollups.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from weir.runtime.counters import Counters, add_ms
from weir.telemetry.rollups.fields import DRIFT
from weir.telemetry.rollups.histogram import Histogram

# The most queues that one SUBS counts as more or fewer. A client may say any number up to 2^63, and sums over all edges
# and days must stay numbers that Redis and tables can hold.
_MOST_DRIFT = 1_000_000_000


@dataclass(slots=True)
class ProxyStats(Counters):
    pRequests: int = 0
    pSuccesses: int = 0  # includes the relay's own errors, which are passed on
    pErrorsConnect: int = 0
    pErrorsCompat: int = 0
    pErrorsOther: int = 0


@dataclass(slots=True)
class ServiceStats(Counters):
    srvAssocNew: int = 0
    srvAssocDuplicate: int = 0
    srvAssocUpdated: int = 0
    srvAssocRemoved: int = 0
    srvSubCount: int = 0
    srvSubDuplicate: int = 0
    srvSubQueues: int = 0
    srvSubEnd: int = 0
    srvSubOk: int = 0
    srvSubMore: int = 0
    srvSubFewer: int = 0
    srvSubDiff: int = 0
    srvSubMoreTotal: int = 0
    srvSubFewerTotal: int = 0

    def drift(self, expected: int, expected_hash: bytes, count: int, ids_hash: bytes) -> str:
        """Classify one SUBS by what the client expects and what is stored. Old notification servers expect −1."""
        diff = count - expected
        if expected == -1 or (diff == 0 and expected_hash == ids_hash):
            self.srvSubOk += 1
            return "ok"
        if diff > 0:
            self.srvSubMore += 1
            self.srvSubMoreTotal += min(diff, _MOST_DRIFT)
            return "more"
        if diff < 0:
            self.srvSubFewer += 1
            self.srvSubFewerTotal += min(-diff, _MOST_DRIFT)
            return "fewer"
        self.srvSubDiff += 1
        return "diff"


@dataclass(slots=True)
class ServiceUse:
    """The use of one service at this edge since the last rollup."""

    role: str  # of weir.telemetry.rollups.fields.ROLES
    delivered: int = 0
    drift: dict[str, int] = field(default_factory=lambda: dict.fromkeys(DRIFT, 0))
    alls: Histogram = field(default_factory=Histogram)  # µs from SUBS to ALLS

    def take(self) -> tuple[dict[str, int], int, Histogram]:
        """Return drift, delivered and alls, and reset them."""
        taken = self.drift, self.delivered, self.alls
        self.drift, self.delivered, self.alls = dict.fromkeys(DRIFT, 0), 0, Histogram()
        return taken


class ServiceUses:
    """The services that have been connected to this edge, by ServiceId."""

    def __init__(self) -> None:
        self.by_id: dict[bytes, ServiceUse] = {}

    def of(self, service_id: bytes, role: str) -> ServiceUse:
        use = self.by_id.get(service_id)
        if use is None:
            use = self.by_id[service_id] = ServiceUse(role)
        return use


@dataclass(slots=True)
class Stats(Counters):
    qCreated: int = 0
    qSecured: int = 0
    qDeletedAll: int = 0
    qDeletedAllB: int = 0
    qDeletedNew: int = 0
    qDeletedSecured: int = 0
    qBlocked: int = 0
    qDamaged: int = 0  # found by the sweeper; a damaged queue counts in every round
    qSub: int = 0  # subscriptions that found a message; others do not count
    qSubAllB: int = 0
    qSubAuth: int = 0
    qSubDuplicate: int = 0
    qSubProhibited: int = 0
    qSubEnd: int = 0
    qSubEndB: int = 0
    ntfCreated: int = 0
    ntfNewCreated: int = 0
    ntfDeleted: int = 0
    ntfDeletedB: int = 0
    ntfSub: int = 0
    ntfSubB: int = 0
    ntfSubAuth: int = 0
    ntfSubDuplicate: int = 0
    msgSent: int = 0
    msgSentAuth: int = 0
    msgSentQuota: int = 0
    msgSentLarge: int = 0
    msgSentBlock: int = 0
    msgRecv: int = 0
    msgRecvGet: int = 0
    msgGet: int = 0
    msgGetNoMsg: int = 0
    msgGetAuth: int = 0
    msgGetDuplicate: int = 0
    msgGetProhibited: int = 0
    msgExpired: int = 0
    msgSentNtf: int = 0
    msgRecvNtf: int = 0
    msgNtfs: int = 0
    msgNtfsB: int = 0
    msgNtfNoSub: int = 0
    msgNtfLost: int = 0
    msgNtfExpired: int = 0
    pMsgFwdsRecv: int = 0
    rcvServicesSubMsg: int = 0
    rcvServicesSubDuplicate: int = 0
    pRelays: ProxyStats = field(default_factory=ProxyStats)
    pRelaysOwn: ProxyStats = field(default_factory=ProxyStats)
    pMsgFwds: ProxyStats = field(default_factory=ProxyStats)
    pMsgFwdsOwn: ProxyStats = field(default_factory=ProxyStats)
    rcvServices: ServiceStats = field(default_factory=ServiceStats)
    ntfServices: ServiceStats = field(default_factory=ServiceStats)
    msgRecvAckTimes: dict[int, int] = field(default_factory=dict)  # bucket of seconds → messages
    msgRecvAckTimesSum: int = 0
    subsToSoksMs: dict[int, int] = field(default_factory=dict)  # bucket of milliseconds → SUBS
    subsToSoksMsSum: int = 0
    subsToAllsMs: dict[int, int] = field(default_factory=dict)
    subsToAllsMsSum: int = 0
    active_queues: set[bytes] = field(default_factory=set)  # recipient ids since the last take
    active_queues_ntf: set[bytes] = field(default_factory=set)
    # For rollups, in µs and messages.
    send_stored: Histogram = field(default_factory=Histogram)
    send_msg: Histogram = field(default_factory=Histogram)
    msg_ack: Histogram = field(default_factory=Histogram)
    subs_soks: Histogram = field(default_factory=Histogram)
    subs_alls: Histogram = field(default_factory=Histogram)
    fold_size: Histogram = field(default_factory=Histogram)
    services: ServiceUses = field(default_factory=ServiceUses)

    def acknowledged(self, sent: float, now: float) -> None:
        """Count a message's time from delivery to ACK, both in Unix time. `sent` 0: it is not known."""
        seconds = 0
        if sent:
            seconds = int(now) - int(sent)
            self.msg_ack.observe((now - sent) * 1e6)
        bucket = _bucket(seconds)
        self.msgRecvAckTimes[bucket] = self.msgRecvAckTimes.get(bucket, 0) + 1
        self.msgRecvAckTimesSum += seconds

    def subscribed_service(self, seconds: float) -> None:
        """Count the time from SUBS to SOKS."""
        add_ms(self.subsToSoksMs, seconds)
        self.subsToSoksMsSum += round(seconds * 1000)
        self.subs_soks.observe(seconds * 1e6)

    def folded(self, seconds: float, delivered: int, use: ServiceUse | None) -> None:
        """Count the time from SUBS to ALLS, and the messages delivered meanwhile."""
        add_ms(self.subsToAllsMs, seconds)
        self.subsToAllsMsSum += round(seconds * 1000)
        self.subs_alls.observe(seconds * 1e6)
        self.fold_size.observe(delivered)
        if use is not None:
            use.alls.observe(seconds * 1e6)


def _bucket(seconds: int) -> int:
    """The reference's buckets: exact up to 5 s, then rounded up to multiples of 5, 10, 30 and 60 s."""
    if seconds <= 5:
        return max(seconds, 0)
    step = 5 if seconds <= 30 else 10 if seconds <= 60 else 30 if seconds <= 180 else 60
    return -(-seconds // step) * step
