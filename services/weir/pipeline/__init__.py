"""The data pipeline: rollups of the edges become tables and a report, on Spark. Extra: weir[pipeline]."""
