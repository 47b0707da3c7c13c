"""Fuzz one decoder until libFuzzer's limits are reached: `python -m tests.fuzz.one NAME [libFuzzer's arguments]`.

It never returns: run it through `tests.fuzz.run`.
"""

import sys

import atheris  # type: ignore[import-untyped, unused-ignore]

with atheris.instrument_imports(include=["weir.wire", "weir.crypto"]):
    from tests.fuzz.harnesses import HARNESSES


def main() -> None:
    atheris.Setup([sys.argv[0], *sys.argv[2:]], HARNESSES[sys.argv[1]])
    atheris.Fuzz()


if __name__ == "__main__":
    main()
