"""The protocols as pure functions: bytes in, values out. No sockets, no clocks, no Redis."""
