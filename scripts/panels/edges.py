"""Panels of the dashboard "Edges": each process of a router."""

from __future__ import annotations

from panels.queries import edge, edge_rate, lines, rate

EDGES = (
    lines("Ready", (edge("weir_edge_ready"), "{{pod}}")),
    lines("Clients", (edge("weir_edge_clients"), "{{pod}}"), stack=True),
    lines("Subscriptions", (edge("weir_edge_subscriptions"), "{{pod}}"), stack=True),
    lines("Handshakes in progress", (edge("weir_edge_handshakes"), "{{pod}}")),
    lines("Sockets accepted", (edge_rate("weir_edge_sockets_accepted"), "{{pod}}"), unit="ops"),
    lines(
        "Connections ended by edges",
        (rate("weir_connections_ended", "reason"), "{{reason}} {{job}}"),
        unit="ops",
        text="refused: no room for more clients, or the edge stops. crowded_out: too many handshakes at once. "
        "timed_out: a handshake took too long. failed: TLS or versions did not fit. stalled: a client did not read.",
    ),
    lines(
        "Bytes waiting for clients",
        (edge("weir_edge_outgoing_bytes"), "{{pod}}"),
        unit="bytes",
        text="Limited per client. Above the limit, an edge keeps only ids; bodies stay in Redis.",
    ),
    lines("Queues waiting for a slow reader", (edge("weir_edge_deferred"), "{{pod}}")),
    lines("Messages waiting for their ACK", (edge("weir_edge_in_flight"), "{{pod}}")),
    lines("Cached queue credentials", (edge("weir_edge_record_cache"), "{{pod}}")),
    lines("Memory", (edge("weir_edge_rss_bytes"), "{{pod}}"), unit="bytes"),
    lines("CPU", (edge_rate("weir_edge_cpu_seconds"), "{{pod}}"), unit="percentunit"),
    lines("Certificate, days left", (edge("weir_edge_certificate_days"), "{{pod}}"), unit="d"),
    lines("Uptime", (edge("weir_edge_uptime_seconds"), "{{pod}}"), unit="s"),
)
