"""The custom resources of weir.dev. Each kind's package has its schema, configuration, children and status."""
