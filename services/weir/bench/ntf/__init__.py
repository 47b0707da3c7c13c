"""`weir bench ntf`: a notification router between an SMP router and a push service's stand-in, all on this machine."""
