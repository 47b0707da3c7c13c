"""Health and metrics of the operator."""

from __future__ import annotations

import aiohttp

from weir_operator import metrics, web


async def test_healthz_and_metrics(unused_tcp_port: int) -> None:
    runner = await web.serve("127.0.0.1", unused_tcp_port)
    counted = []
    metrics.before_each_page(lambda: counted.append(1))
    try:
        async with aiohttp.ClientSession() as session:
            async with session.get(f"http://127.0.0.1:{unused_tcp_port}/healthz") as response:
                assert (response.status, await response.text()) == (200, "ok\n")
            async with session.get(f"http://127.0.0.1:{unused_tcp_port}/metrics") as response:
                text = await response.text()
                assert response.headers["Content-Type"].startswith("text/plain")
    finally:
        metrics.before_each_page(lambda: None)
        await runner.cleanup()
    assert counted == [1]
    for name in (
        "weir_operator_reconciles_total",
        "weir_operator_reconcile_seconds",
        "weir_operator_api_requests_total",
        "weir_operator_objects",
        "weir_operator_certificate_expiry_seconds",
        "weir_operator_drift_repairs_total",
        "weir_operator_leader",
    ):
        assert f"# TYPE {name.removesuffix('_total')}" in text or f"# TYPE {name}" in text
