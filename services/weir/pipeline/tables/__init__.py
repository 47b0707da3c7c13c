"""Bronze becomes silver, and silver gold: what is kept, for how long, and in which columns."""
