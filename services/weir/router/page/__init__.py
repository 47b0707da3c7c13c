"""The server page, health, readiness and metrics over HTTP."""
