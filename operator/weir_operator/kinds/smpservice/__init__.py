"""SMPService: the identity of a client service that a router knows."""
