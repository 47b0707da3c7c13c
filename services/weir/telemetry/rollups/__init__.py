"""Rollups: what an edge publishes about an interval. Pure: weir.runtime.rollups writes, weir.pipeline reads."""
