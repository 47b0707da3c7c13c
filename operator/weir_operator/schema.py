"""python -m weir_operator.schema DIR [--check]: write the CRDs as YAML files, or name the files that are out of date.

The schema of a kind is in kinds/KIND/schema.py. The parts that all routers share are in kinds/routers/schema.py.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import yaml

from weir_operator.kinds import names
from weir_operator.kinds.definition import crd
from weir_operator.kinds.registry import DEFINITIONS

_HEADER = "# Made by `python -m weir_operator.schema k8s/crds` from operator/weir_operator/schema: change it there.\n"


class _Plain(yaml.SafeDumper):
    """Writes no anchors: a reader of a CRD should find every part in full where it is used."""

    def ignore_aliases(self, data: object) -> bool:
        return True


def render(kind: str) -> str:
    return _HEADER + yaml.dump(crd(DEFINITIONS[kind]), Dumper=_Plain, sort_keys=False, width=120, allow_unicode=True)


def file_name(kind: str) -> str:
    return f"{names.GROUP}_{names.PLURALS[kind]}.yaml"


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m weir_operator.schema", description="Write the CRDs as YAML files.")
    parser.add_argument("directory", type=Path, help="where the files are")
    parser.add_argument("--check", action="store_true", help="write nothing; fail when a file is out of date")
    arguments = parser.parse_args(argv)
    stale = []
    for kind in DEFINITIONS:
        path: Path = arguments.directory / file_name(kind)
        if not arguments.check:
            path.write_text(render(kind), "utf-8")
        elif not path.exists() or path.read_text("utf-8") != render(kind):
            stale.append(str(path))
    for line in stale:
        print(f"{line} is out of date: run python -m weir_operator.schema {arguments.directory}", file=sys.stderr)
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
