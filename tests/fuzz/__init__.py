"""Fuzzing of every decoder and of real edges.

Each decoder has a harness, seeds made from the golden bytes, and the inputs that crashed it once.
"""
