"""The fleet's numbers: added up, fresh, and as cheap for many viewers as for one."""

import asyncio

from tests.router.fleet import Fleet
from weir.router.surface.metrics import FLEET, GAUGES
from weir.surface.fleet import Fleet as FleetView


async def test_all_edges_are_in_it_with_this_ones_own_numbers_fresh(fleet: Fleet) -> None:
    await fleet[1].save()
    client = await fleet.client(0)
    await client.smp.ping()
    numbers = await FleetView(fleet[0]).numbers()
    assert {fleet[0].edge_id, fleet[1].edge_id} <= numbers.edges.keys()
    assert numbers.edges[fleet[0].edge_id]["clients"] == 1  # before it was ever published
    assert numbers.total("clients") >= 1
    assert numbers.redis["up"] == 1


async def test_many_viewers_cost_redis_as_much_as_one(fleet: Fleet) -> None:
    view = FleetView(fleet[0])
    first, *others = await asyncio.gather(*(view.numbers() for _ in range(50)))
    assert all(numbers is first for numbers in others)


async def test_an_edge_has_every_gauge_that_the_metrics_show(fleet: Fleet) -> None:
    shown = {number for _, _, number in FLEET} | {number for metric in GAUGES for _, number in metric.samples}
    assert shown - fleet[0].gauges().keys() == set()
