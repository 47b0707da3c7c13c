"""The children of an SMPRouter: those of every router, around `weir smp edge`."""

from __future__ import annotations

from weir_operator.kinds import names
from weir_operator.kinds.routers.children import children
from weir_operator.kinds.routers.model import Observed, Router
from weir_operator.kinds.routers.network import published_hosts, published_port
from weir_operator.kinds.routers.workload import Program, secret_variable
from weir_operator.kinds.smprouter.config import config_file
from weir_operator.kube.objects import Manifest

COMPONENT = "edge"
PROTOCOL = "smp"


def desired_state(router: Router, observed: Observed) -> list[Manifest]:
    config = config_file(router, published_hosts(router, observed), published_port(router, observed, PROTOCOL))
    return children(router, observed, _program(router), config)


def _program(router: Router) -> Program:
    environment = []
    if "basicAuth" in router.spec:
        given = router.spec["basicAuth"]
        environment.append(secret_variable("WEIR_AUTH_CREATE_PASSWORD", given["name"], given["key"]))
    return Program(
        component=COMPONENT,
        protocol=PROTOCOL,
        port=names.SMP_PORT,
        command=["weir", "smp", "edge"],
        environment=environment,
    )
