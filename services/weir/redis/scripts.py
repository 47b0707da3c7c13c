"""The Lua scripts: read from their files, includes expanded, addressed by their SHA-1."""

import re
from hashlib import sha1
from importlib.resources.abc import Traversable

_INCLUDE = re.compile(r"^ *-- include: (\w+)\n", re.MULTILINE)


def names(folder: Traversable) -> tuple[str, ...]:
    return tuple(sorted(f.name.removesuffix(".lua") for f in folder.iterdir() if f.name.endswith(".lua")))


def expand(folder: Traversable, name: str, *, cluster: bool = False, sharded: bool = False) -> str:
    """A script's text, with each include inserted where it is named first. On a cluster it starts with settled.lua."""
    seen: set[str] = set()

    def piece(match: re.Match[str]) -> str:
        part = match.group(1)
        if part in seen:
            return ""
        seen.add(part)
        file = "poke_shard" if part == "poke" and sharded else part
        return _INCLUDE.sub(piece, (folder / "include" / f"{file}.lua").read_text())

    check = (folder / "include" / "settled.lua").read_text() if cluster else ""
    return check + _INCLUDE.sub(piece, (folder / f"{name}.lua").read_text())


class Scripts:
    """All scripts in the form for one kind of Redis. `sharded`: Redis has SPUBLISH (a cluster from 7.0 on)."""

    def __init__(self, folder: Traversable | None, *, cluster: bool = False, sharded: bool = False) -> None:
        self.sharded = sharded
        self.texts: dict[str, bytes] = {}
        if folder is not None:
            for name in names(folder):
                self.texts[name] = expand(folder, name, cluster=cluster, sharded=sharded).encode()
        self.shas = {name: sha1(text).hexdigest().encode() for name, text in self.texts.items()}

    def head(self, name: str, keys: int, args: int) -> bytes:
        """The start of an EVALSHA on the wire, up to the first key. `args` counts the retry flag."""
        return b"*%d\r\n$7\r\nEVALSHA\r\n$40\r\n%b\r\n$%d\r\n%d\r\n" % (
            3 + keys + args,
            self.shas[name],
            len(str(keys)),
            keys,
        )
