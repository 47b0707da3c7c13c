"""Benches: the least CPU time that a router can need on this machine (floor), and the cost of a real router.

A bench starts generator processes (`workers`), which prepare their clients (`clients`, `subscribe`, `pairs`), start
together, and report what they counted. Meanwhile `system` reads the CPU time and memory of the router's processes.
"""
