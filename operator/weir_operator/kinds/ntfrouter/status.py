"""The parts of an NTFRouter's status that other routers do not have: push services, and subscribed SMP routers."""

from __future__ import annotations

from collections.abc import Mapping

from weir_operator.kinds.routers.model import Counts, Own, Router
from weir_operator.kube.conditions import Condition, condition

NUMBERS = ("connections", "tokens", "subscriptions", "servers", "subscribed")
COUNTED = ("connections", "tokens", "subscriptions", "servers")
NEEDED = ("PushReady",)


def counts(numbers: Mapping[str, int]) -> Counts:
    known, subscribed = numbers["servers"], numbers["subscribed"]
    servers = {"known": known, "subscribed": subscribed, "summary": f"{subscribed}/{known}"}
    return {name: numbers[name] for name in ("connections", "tokens", "subscriptions")} | {"servers": servers}


def conditions(router: Router, own: Own, found: Counts | None) -> list[Condition]:
    push = (
        condition("PushReady", True, "Configured", own.message)
        if own.problem is None
        else condition("PushReady", False, own.problem.reason, own.problem.message)
    )
    return [push, _subscribed(found)]


def _subscribed(found: Counts | None) -> Condition:
    """An SMP router that cannot be reached is no fault of this router, so Ready does not depend on this."""
    kind = "Subscribed"
    if found is None:
        return condition(kind, None, "Pending", "the edges have not been asked yet")
    known, subscribed = found["servers"]["known"], found["servers"]["subscribed"]
    if known == 0:
        return condition(kind, True, "NoServers", "no device has subscribed to a queue yet")
    if subscribed == known:
        return condition(kind, True, "AllServers", f"subscribed to all of {known} SMP routers")
    text = f"subscribed to {subscribed} of {known} SMP routers; the page of the router says more about your own"
    return condition(kind, False, "SomeServers", text)
