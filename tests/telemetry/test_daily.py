"""The reference's daily statistics: how many columns, in which order, made of what."""

from weir.telemetry.daily import NTF, SMP
from weir.telemetry.rollups.fields import EVENTS, GAUGES

_RELAY = ["pRequests", "pSuccesses", "pErrorsConnect", "pErrorsCompat", "pErrorsOther"]


def test_smp_has_101_columns_with_the_date() -> None:
    """In groups: basic numbers, forwarding, further counters, services, and the resolver that Weir does not have."""
    names = [column.name for column in SMP]
    assert 1 + len(names) == 19 + 4 * 5 + 41 + 2 * 8 + 5 == 101
    assert names[:5] == ["qCreated", "qSecured", "qDeletedAll", "msgSent", "msgRecv"]
    assert names[17:19] == ["qDeletedSecured", "pRelays_pRequests"]
    assert names[18:38] == [f"{g}_{n}" for g in ("pRelays", "pRelaysOwn", "pMsgFwds", "pMsgFwdsOwn") for n in _RELAY]
    assert (names[38], names[78], names[79]) == ("pMsgFwdsRecv", "ntfServiceQueuesCount", "rcvServices_srvAssocNew")
    assert [column.how for column in SMP[95:]] == ["zero"] * 5


def test_ntf_has_22_columns_with_the_date() -> None:
    assert 1 + len(NTF) == 22
    assert [column.how for column in NTF] == ["sum"] * 7 + ["active"] * 6 + ["sum"] * 8


def test_names_are_unique_and_made_of_what_edges_publish() -> None:
    for program, listed in (("smp", SMP), ("ntf", NTF)):
        assert len({column.name for column in listed}) == len(listed)
        for column in listed:
            if column.how == "sum":
                assert column.of in EVENTS[program]
            elif column.how == "last":
                assert f"fleet_{column.of}" in GAUGES[program]
            elif column.how == "active":
                gauge = column.of.replace("queues_", "active_queues_").replace("notifiers_", "active_ntf_")
                gauge = gauge.replace("tokens_", "active_tokens_").replace("subscriptions_", "active_subscriptions_")
                assert f"fleet_{gauge}" in GAUGES[program]
