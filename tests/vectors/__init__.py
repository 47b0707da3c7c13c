"""Golden bytes: a copy of the vectors as data, and the program that holds them against Weir."""
