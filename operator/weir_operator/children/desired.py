"""desired_state: every child a router should have, in the order they are applied."""

from __future__ import annotations

from weir_operator import names
from weir_operator.children.common import child, component
from weir_operator.children.config import config_file
from weir_operator.children.network import edges_service, http_service, policies, public_service
from weir_operator.children.redis import embedded_redis
from weir_operator.children.scaling import autoscaler, disruption_budget, service_monitor
from weir_operator.children.workload import deployment
from weir_operator.model import Manifest, Observed, Router


def desired_state(router: Router, observed: Observed) -> list[Manifest]:
    """Pure: the same spec and observations give the same children, byte for byte, in every version that did not mean
    to change them; so upgrading the operator rolls no edge by itself.

    NAME-identity and NAME-store are not here: they are made once, never again, and kept (see keys.py).
    """
    part = component(router)
    account = child(router, "v1", "ServiceAccount", router.name, part, automountServiceAccountToken=False)
    config = config_file(router, published_hosts(router, observed), published_port(router, observed))
    made = [
        account,
        child(router, "v1", "ConfigMap", names.config(router.name), part, data={names.CONFIG_FILE: config}),
        *policies(router),
        public_service(router),
    ]
    if router.smp:
        made += [edges_service(router), http_service(router)]
    made += embedded_redis(router, observed)
    if observed.address is not None:
        data = {names.ADDRESS: observed.address}
        made.append(child(router, "v1", "ConfigMap", names.address(router.name), part, data=data))
    if observed.edge_secret is not None:
        notes = observed.edge_annotations
        secret = child(router, "v1", "Secret", names.edge(router.name), part, annotations=notes, type="Opaque")
        made.append({**secret, "data": dict(observed.edge_secret)})
        # Without the Secret pods could not start; a Deployment that is there already then stays as it is.
        made.append(deployment(router, observed, config))
        made += disruption_budget(router)
        if router.smp:
            made += autoscaler(router, observed)
            made += service_monitor(router, observed)
    return made


def published_hosts(router: Router, observed: Observed) -> list[str]:
    """The hosts in the address: the given ones, else the load balancer's, else the Service's name in the cluster."""
    given = list(router.spec.get("hosts") or ())
    return given or [observed.public_host or f"{router.name}.{router.namespace}.svc"]


def published_port(router: Router, observed: Observed) -> int:
    """The port that goes with those hosts: a node's only where the given hosts are nodes."""
    ports, exposure = router.spec["ports"], router.spec["exposure"]
    own: int = ports["smp" if router.smp else "ntf"]
    if "public" in ports:
        own = ports["public"]
    elif not router.spec.get("hosts"):
        return own
    elif exposure["type"] == "NodePort":
        own = exposure.get("nodePort") or observed.node_port or own
    elif exposure["type"] == "HostPort":
        own = exposure.get("hostPort") or own
    return own
