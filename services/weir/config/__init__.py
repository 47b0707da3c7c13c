"""Settings for any Weir program: kinds of values, the file and environment reader, the TOML writer.

A program declares its sections as dataclasses whose fields are made by `kinds.setting`, and wraps them in a
`schema.Schema`. This package imports no other part of Weir.
"""
