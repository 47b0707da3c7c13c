"""NTFRouter: one address of a notification router, and the pods behind it."""

from weir_operator.kinds import names
from weir_operator.kinds.ntfrouter.children import COMPONENT, PROTOCOL, desired_state
from weir_operator.kinds.routers.model import RouterKind

KIND = RouterKind(
    name=names.NTF_ROUTER,
    component=COMPONENT,
    protocol=PROTOCOL,
    usual_port=names.NTF_PORT,
    authority="NTF server CA",
    desired_state=desired_state,
)
