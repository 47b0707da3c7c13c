"""The custom resources' schemas as Python values: the source of k8s/crds and of the defaults the operator sees."""

from weir_operator.schema.crds import CRDS, crd, spec_schema
from weir_operator.schema.defaults import with_defaults

__all__ = ["CRDS", "crd", "spec_schema", "with_defaults"]
