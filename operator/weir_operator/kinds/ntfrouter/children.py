"""The children of an NTFRouter: pods that push notifications, their Service, and Redis."""

from __future__ import annotations

from weir_operator.kinds import names
from weir_operator.kinds.ntfrouter.config import config_file
from weir_operator.kinds.routers.children import address_map, foundation, pods
from weir_operator.kinds.routers.embedded_redis import embedded_redis
from weir_operator.kinds.routers.model import Observed, Router
from weir_operator.kinds.routers.network import policies, public_service, published_hosts, published_port
from weir_operator.kinds.routers.workload import Program
from weir_operator.kube.objects import Manifest

COMPONENT = "ntf"
PROTOCOL = "ntf"
_KEY_DIRECTORIES = {"apns": names.APNS_DIR, "fcm": names.FCM_DIR}


def desired_state(router: Router, observed: Observed) -> list[Manifest]:
    """Every child, in the order in which they are applied. Pure, like the desired state of an SMPRouter."""
    config = config_file(router, published_hosts(router, observed), published_port(router, observed, PROTOCOL))
    return [
        *foundation(router, COMPONENT, config),
        *policies(router, observed, COMPONENT, names.NTF_TARGET_PORT),
        public_service(router, COMPONENT, PROTOCOL),
        *embedded_redis(router, observed),
        *address_map(router, COMPONENT, observed),
        *pods(router, observed, _program(router), config),
    ]


def _program(router: Router) -> Program:
    push = router.spec["push"]
    return Program(
        component=COMPONENT,
        command=["weir", "ntf"],
        ports=[{"name": "ntf", "containerPort": names.NTF_TARGET_PORT, "protocol": "TCP"}],
        secrets={
            provider: (push[provider]["secretName"], directory)
            for provider, directory in _KEY_DIRECTORIES.items()
            if provider in push
        },
    )
