"""The bound on the subscriptions that all sessions together hold."""

import asyncio

from weir.notifier.subscriber.budget import Budget


async def test_tasks_wait_in_order_and_never_hold_more() -> None:
    budget, order = Budget(10), list[int]()

    async def use(number: int, amount: int) -> None:
        async with budget.take(amount):
            assert budget.used <= 10
            order.append(number)
            await asyncio.sleep(0.01)

    await asyncio.gather(*(use(number, amount) for number, amount in enumerate([6, 4, 10, 1, 9, 25, 3])))
    assert order == [0, 1, 2, 3, 4, 5, 6]
    assert budget.used == 0


async def test_a_task_that_gives_up_leaves_nothing_behind() -> None:
    budget = Budget(1)
    async with budget.take(1):
        waiting = asyncio.create_task(budget.take(1).__aenter__())
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
    async with asyncio.timeout(1), budget.take(1):
        pass
