"""SMPRouter: one SMP address, any number of edges, one Redis."""

from weir_operator.kinds import names
from weir_operator.kinds.routers.model import RouterKind
from weir_operator.kinds.smprouter.children import COMPONENT, PROTOCOL, desired_state

_NUMBERS = ("connections", "queues", "messages")

KIND = RouterKind(
    name=names.SMP_ROUTER,
    component=COMPONENT,
    protocol=PROTOCOL,
    usual_port=names.SMP_PORT,
    authority="SMP server CA",
    desired_state=desired_state,
    store_keys=(names.PLACEMENT_KEY,),
    numbers=_NUMBERS,
    counts=dict,
    counted=_NUMBERS,
)
