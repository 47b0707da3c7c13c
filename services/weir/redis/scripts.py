"""The Lua scripts: read from their files, includes expanded, addressed by their SHA-1.

A program names folders: its own one first, then those that it shares with other programs. A script or an include is
taken from the first folder that has it.
"""

import re
from collections.abc import Sequence
from hashlib import sha1
from importlib.resources.abc import Traversable

Folders = Sequence[Traversable]
_INCLUDE = re.compile(r"^ *-- include: (\w+)\n", re.MULTILINE)


def names(folders: Folders) -> tuple[str, ...]:
    found = {f.name.removesuffix(".lua") for folder in folders for f in folder.iterdir() if f.name.endswith(".lua")}
    return tuple(sorted(found))


def read(folders: Folders, name: str) -> str:
    """The text of a script, or of `include/name`."""
    for folder in folders:
        file = folder / f"{name}.lua"
        if file.is_file():
            return file.read_text()
    raise FileNotFoundError(f"no script {name}")


def expand(folders: Folders, name: str, *, cluster: bool = False, sharded: bool = False) -> str:
    """A script's text, with each include inserted where it is named first. On a cluster it starts with settled.lua."""
    seen: set[str] = set()

    def piece(match: re.Match[str]) -> str:
        part = match.group(1)
        if part in seen:
            return ""
        seen.add(part)
        file = "poke_shard" if part == "poke" and sharded else part
        return _INCLUDE.sub(piece, read(folders, f"include/{file}"))

    check = read(folders, "include/settled") if cluster else ""
    return check + _INCLUDE.sub(piece, read(folders, name))


class Scripts:
    """All scripts in the form for one kind of Redis. `sharded`: Redis has SPUBLISH (a cluster from 7.0 on)."""

    def __init__(self, folders: Folders = (), *, cluster: bool = False, sharded: bool = False) -> None:
        self.sharded = sharded
        self.texts = {name: expand(folders, name, cluster=cluster, sharded=sharded).encode() for name in names(folders)}
        self.shas = {name: sha1(text).hexdigest().encode() for name, text in self.texts.items()}

    def head(self, name: str, keys: int, args: int) -> bytes:
        """The start of an EVALSHA on the wire, up to the first key. `args` counts the retry flag."""
        return b"*%d\r\n$7\r\nEVALSHA\r\n$40\r\n%b\r\n$%d\r\n%d\r\n" % (
            3 + keys + args,
            self.shas[name],
            len(str(keys)),
            keys,
        )
