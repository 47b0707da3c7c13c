"""How to reach the API server: the pod's service account, else a kubeconfig. Every request made is counted here."""

from __future__ import annotations

import logging
import os
from types import SimpleNamespace
from typing import Any

import aiohttp
import kopf

from weir_operator.metrics import API_REQUESTS

_log = logging.getLogger("weir.operator")


def login() -> kopf.ConnectionInfo:
    """Read anew at each call, because service account tokens are replaced while a pod runs."""
    options: dict[str, Any] = {"logger": _log, "settings": kopf.OperatorSettings()}
    info = None
    if os.environ.get("KUBERNETES_SERVICE_HOST") and not os.environ.get("KUBECONFIG"):
        info = kopf.login_with_service_account(**options)
    info = info or _with_client() or kopf.login_with_kubeconfig(**options)
    if info is None:
        raise kopf.LoginError("no service account and no kubeconfig: set KUBECONFIG, or run in a pod")
    return info


def _with_client() -> kopf.ConnectionInfo | None:
    """Kubernetes' own client knows every way to log in that a kubeconfig can ask for. It is too large for the image,
    where the service account is the only way needed."""
    try:
        import kubernetes.config
    except ImportError:
        return None
    found = kubernetes.client.Configuration()
    path = os.environ.get("KUBECONFIG") or None
    load: Any = kubernetes.config.load_kube_config
    try:
        load(config_file=path, client_configuration=found)
    except kubernetes.config.ConfigException as error:
        raise kopf.LoginError(f"no service account, and the kubeconfig cannot be used: {error}") from None
    key: str = found.get_api_key_with_prefix("BearerToken") or found.get_api_key_with_prefix("authorization") or ""
    scheme, _, token = key.rpartition(" ")
    return kopf.ConnectionInfo(
        server=found.host,
        ca_path=found.ssl_ca_cert,
        insecure=not found.verify_ssl,
        username=found.username or None,
        password=found.password or None,
        scheme=scheme or None,
        token=token or None,
        certificate_path=found.cert_file,
        private_key_path=found.key_file,
    )


def open_session(info: kopf.ConnectionInfo, *, limit: int) -> aiohttp.ClientSession:
    tls: Any = info.as_ssl_context() if info.server.startswith("https") else False
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=limit, ssl=tls),
        headers={"User-Agent": "weir-operator", **info.as_http_headers()},
        proxy=info.proxy_url,
        trace_configs=[_counting()],
    )


def _counting() -> aiohttp.TraceConfig:
    trace = aiohttp.TraceConfig()

    async def ended(
        _session: aiohttp.ClientSession, _context: SimpleNamespace, done: aiohttp.TraceRequestEndParams
    ) -> None:
        verb = "WATCH" if done.url.query.get("watch") == "true" else done.method
        API_REQUESTS.labels(verb, str(done.response.status)).inc()

    async def failed(
        _session: aiohttp.ClientSession, _context: SimpleNamespace, lost: aiohttp.TraceRequestExceptionParams
    ) -> None:
        API_REQUESTS.labels(lost.method, "lost").inc()

    trace.on_request_end.append(ended)
    trace.on_request_exception.append(failed)
    return trace
