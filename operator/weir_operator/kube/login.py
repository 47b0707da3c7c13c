"""How the operator reaches the API server: with the pod's service account, or else with a kubeconfig.

The official client (kubernetes.aio) reads both. kopf has its own HTTP layer for watches, so it gets a session made from
the same configuration. Both report every request they make, so that the operator can count them.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace

import aiohttp
import kopf
from kubernetes.aio import config
from kubernetes.aio.client import ApiClient, Configuration

_CONNECTIONS = 16


def _ignore(_verb: str, _code: str) -> None:
    pass


@dataclass(frozen=True, slots=True)
class Login:
    """Opens connections to the API server. `on_request` is called with the verb and the status of each request."""

    user_agent: str
    on_request: Callable[[str, str], None] = _ignore

    async def open_client(self) -> ApiClient:
        """A client of the official library. In a pod the library rereads the service account's token every minute."""
        found = Configuration()
        try:
            if os.environ.get("KUBERNETES_SERVICE_HOST") and not os.environ.get("KUBECONFIG"):
                config.load_incluster_config(client_configuration=found)
            else:
                path = os.environ.get("KUBECONFIG") or None
                await config.load_kube_config(config_file=path, client_configuration=found, persist_config=False)
        except (config.ConfigException, OSError) as error:
            raise kopf.LoginError(f"no usable service account and no usable kubeconfig: {error}") from None
        found.connection_pool_maxsize = _CONNECTIONS
        found.trace_configs = [self._trace()]
        # A GET that the server answers with Retry-After is repeated by the library, as Kubernetes' Go client does it.
        found.client_go_retries = True
        client = ApiClient(found)
        client.user_agent = self.user_agent
        return client

    async def open_session(self) -> kopf.AiohttpSession:
        """A session for kopf's watches. kopf asks for a new one when the API server refuses the token."""
        client = await self.open_client()
        found = client.configuration
        headers = {"User-Agent": self.user_agent}
        token = await found.get_api_key_with_prefix("BearerToken")
        if token:
            headers["Authorization"] = token
        session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, ssl=client.rest_client.ssl_context),
            headers=headers,
            proxy=found.proxy,
            trust_env=True,
            trace_configs=found.trace_configs,
        )
        return kopf.AiohttpSession(aiohttp_session=session, server=found.host)

    def _trace(self) -> aiohttp.TraceConfig:
        trace = aiohttp.TraceConfig()

        async def answered(
            _session: aiohttp.ClientSession, _context: SimpleNamespace, request: aiohttp.TraceRequestEndParams
        ) -> None:
            verb = "WATCH" if request.url.query.get("watch") == "true" else request.method
            self.on_request(verb, str(request.response.status))

        async def failed(
            _session: aiohttp.ClientSession, _context: SimpleNamespace, request: aiohttp.TraceRequestExceptionParams
        ) -> None:
            self.on_request(request.method, "lost")

        trace.on_request_end.append(answered)
        trace.on_request_exception.append(failed)
        return trace
