"""The parts that all kinds of routers share. The package of a kind has the parts of that kind alone."""
