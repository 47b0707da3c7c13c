"""Weir: SimpleX message routers as a fleet. Stateless TLS edges, state in Redis."""

__version__ = "0.1.0"
