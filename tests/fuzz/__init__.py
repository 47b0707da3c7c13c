"""Fuzzing of every decoder: a harness each, seeds made from the golden bytes, and what crashed once."""
