"""The children that every router has, in the order in which they are applied.

NAME-identity and NAME-store are not among them. They are made once, never again, and kept: see keys.py.
"""

from __future__ import annotations

from weir_operator.kinds import names
from weir_operator.kinds.metadata import child, selector
from weir_operator.kinds.routers.model import Observed, Router
from weir_operator.kinds.routers.workload import Program, deployment
from weir_operator.kube.objects import Manifest


def foundation(router: Router, component: str, config_text: str) -> list[Manifest]:
    """Children that the other children refer to: the account of the pods, and their configuration file."""
    data = {names.CONFIG_FILE: config_text}
    return [
        child(router, "v1", "ServiceAccount", router.name, component, automountServiceAccountToken=False),
        child(router, "v1", "ConfigMap", names.config(router.name), component, data=data),
    ]


def address_map(router: Router, component: str, observed: Observed) -> list[Manifest]:
    """The address, for other programs in the namespace."""
    if observed.address is None:
        return []
    data = {names.ADDRESS: observed.address}
    return [child(router, "v1", "ConfigMap", names.address(router.name), component, data=data)]


def pods(router: Router, observed: Observed, program: Program, config_text: str) -> list[Manifest]:
    """The Deployment and the Secret of its pods. Without the Secret the pods could not start, so there is neither;
    a Deployment that exists is then left as it is."""
    if observed.edge_secret is None:
        return []
    part = program.component
    notes = observed.edge_annotations
    secret = child(router, "v1", "Secret", names.edge(router.name), part, annotations=notes, type="Opaque")
    return [
        {**secret, "data": dict(observed.edge_secret)},
        deployment(router, observed, program, config_text),
        *_disruption_budget(router, part),
    ]


def _disruption_budget(router: Router, part: str) -> list[Manifest]:
    scaling = router.spec.get("autoscaling")
    least = scaling["minReplicas"] if scaling else router.spec["replicas"]
    # A single pod must stay evictable, or no node can be drained.
    if not router.spec["disruptionBudget"] or least < 2 or router.spec["maintenance"]["edges"] == "Stopped":
        return []
    spec = {"maxUnavailable": 1, "selector": {"matchLabels": selector(router, part)}}
    return [child(router, "policy/v1", "PodDisruptionBudget", router.name, part, spec=spec)]
