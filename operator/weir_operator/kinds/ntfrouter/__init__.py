"""NTFRouter: one NTF address, any number of edges, one Redis, and the push services that they send to."""

from weir_operator.kinds import names
from weir_operator.kinds.ntfrouter.children import COMPONENT, PROTOCOL, desired_state
from weir_operator.kinds.ntfrouter.push_keys import push_keys
from weir_operator.kinds.ntfrouter.status import COUNTED, NEEDED, NUMBERS, conditions, counts
from weir_operator.kinds.routers.model import RouterKind

KIND = RouterKind(
    name=names.NTF_ROUTER,
    component=COMPONENT,
    protocol=PROTOCOL,
    usual_port=names.NTF_PORT,
    authority="NTF server CA",
    desired_state=desired_state,
    store_keys=(names.PLACEMENT_KEY, names.STORAGE_KEY),
    numbers=NUMBERS,
    counts=counts,
    counted=COUNTED,
    conditions=conditions,
    needed=NEEDED,
    own_keys=push_keys,
)
