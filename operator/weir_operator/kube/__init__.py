"""Kubernetes as the operator uses it. This package knows nothing of Weir: names, kinds and schemas are passed in."""
