"""Stand-ins for Apple's and other push services, for benches and tests. Real TLS, HTTP/2 and HTTP/1.1.

`python -m weir.bench.standins` runs both as a process. In both, requests below `/standin/` are for tests; all
others are answered as the service does.
"""
