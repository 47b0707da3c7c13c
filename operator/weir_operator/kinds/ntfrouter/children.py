"""The children of an NTFRouter: those of every router, around `weir ntf edge`."""

from __future__ import annotations

from weir_operator.kinds import names
from weir_operator.kinds.ntfrouter.config import config_file, vapid_source
from weir_operator.kinds.routers.children import children
from weir_operator.kinds.routers.model import Observed, Router
from weir_operator.kinds.routers.network import published_hosts, published_port
from weir_operator.kinds.routers.workload import Mounted, Program
from weir_operator.kube.objects import Manifest

COMPONENT = "ntf"
PROTOCOL = "ntf"


def desired_state(router: Router, observed: Observed) -> list[Manifest]:
    config = config_file(router, published_hosts(router, observed), published_port(router, observed, PROTOCOL))
    program = Program(
        component=COMPONENT,
        protocol=PROTOCOL,
        port=names.NTF_TARGET_PORT,
        command=["weir", "ntf", "edge"],
        secrets=_secrets(router),
        calls_out=True,
    )
    return children(router, observed, program, config)


def _secrets(router: Router) -> dict[str, Mounted]:
    """The whole Secrets are mounted: a key that is added to one reaches the pods before the spec names the key."""
    push = router.spec["push"]
    mounted = {}
    if "apns" in push:
        mounted["apns"] = Mounted(push["apns"]["secretName"], names.APNS_DIR)
        if "ca" in push["apns"]:
            mounted["apns-ca"] = Mounted(push["apns"]["ca"]["name"], names.APNS_CA_DIR)
    web_push = push["webPush"]
    if web_push["enabled"]:
        secret, _ = vapid_source(router)
        mounted["web-push"] = Mounted(secret, names.WEB_PUSH_DIR)
        if "ca" in web_push:
            mounted["web-push-ca"] = Mounted(web_push["ca"]["name"], names.WEB_PUSH_CA_DIR)
    return mounted
