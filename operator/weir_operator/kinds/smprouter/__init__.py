"""SMPRouter: one SMP address, any number of edges, one Redis."""

from weir_operator.kinds import names
from weir_operator.kinds.routers.model import RouterKind
from weir_operator.kinds.smprouter.children import COMPONENT, PROTOCOL, desired_state
from weir_operator.kinds.smprouter.scaling import scaling_metric
from weir_operator.kinds.smprouter.status import COUNTED, read_counts

KIND = RouterKind(
    name=names.SMP_ROUTER,
    component=COMPONENT,
    protocol=PROTOCOL,
    usual_port=names.SMP_PORT,
    authority="SMP server CA",
    desired_state=desired_state,
    read_counts=read_counts,
    counted=COUNTED,
    scaled_by=scaling_metric,
)
