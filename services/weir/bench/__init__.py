"""Measuring: what this machine can do at best (floor), and what a router does on it (everything else)."""
