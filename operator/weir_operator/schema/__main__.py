"""python -m weir_operator.schema DIR [--check]: writes the CRDs as YAML, or says which file is not what they are."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import yaml

from weir_operator import names
from weir_operator.schema.crds import CRDS, crd

_HEADER = "# Made by `python -m weir_operator.schema k8s/crds` from operator/weir_operator/schema: change it there.\n"


class _Plain(yaml.SafeDumper):
    """Without anchors: a reader of a CRD should find the whole of a part where it stands."""

    def ignore_aliases(self, data: object) -> bool:
        return True


def render(kind: str) -> str:
    return _HEADER + yaml.dump(crd(kind), Dumper=_Plain, sort_keys=False, width=120, allow_unicode=True)


def file_name(kind: str) -> str:
    return f"{names.GROUP}_{names.PLURALS[kind]}.yaml"


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m weir_operator.schema", description=__doc__)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_args(argv)
    stale = []
    for kind in CRDS:
        path: Path = arguments.directory / file_name(kind)
        if not arguments.check:
            path.write_text(render(kind), "utf-8")
        elif not path.exists() or path.read_text("utf-8") != render(kind):
            stale.append(str(path))
    for line in stale:
        print(f"{line} is not what operator/weir_operator/schema says", file=sys.stderr)
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
