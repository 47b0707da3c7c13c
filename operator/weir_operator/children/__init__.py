"""The children of a router, as pure functions of its spec and of what has been observed."""

from weir_operator.children.desired import desired_state

__all__ = ["desired_state"]
