import pytest

from weir.wire.address import ServerHost
from weir.wire.errors import CommandError, Simple
from weir.wire.smp import commands as c
from weir.wire.smp import replies as r
from weir.wire.smp.commands import Command
from weir.wire.smp.credentials import check_reply
from weir.wire.smp.replies import CertChainKey, Reply
from weir.wire.versions import VersionRange

NO_AUTH, HAS_AUTH, NO_ENTITY = CommandError.NO_AUTH, CommandError.HAS_AUTH, CommandError.NO_ENTITY
_K = b"key"
_SERVER = ServerHost((b"h",), b"", b"")

# The error for (authorised, has an entity id): (no, no) (no, yes) (yes, no) (yes, yes)
_BOTH = (NO_AUTH, NO_AUTH, NO_AUTH, None)
_NEITHER = (None, HAS_AUTH, HAS_AUTH, HAS_AUTH)
_ENTITY_ONLY = (NO_ENTITY, None, NO_ENTITY, HAS_AUTH)
_TABLE: list[tuple[Command, tuple[CommandError | None, ...]]] = [
    (c.NEW(_K, _K), (NO_AUTH, NO_AUTH, None, HAS_AUTH)),
    (c.SEND(False, b""), (NO_ENTITY, None, NO_ENTITY, None)),
    *((command, _NEITHER) for command in (c.PING(), c.PRXY(_SERVER, None), c.RFWD(b""), c.RSLV(b"a.b"))),
    *((command, _ENTITY_ONLY) for command in (c.LGET(), c.PFWD(8, _K, b""))),
    *(
        (command, _BOTH)
        for command in (
            c.SUB(),
            c.SUBS(0, b""),
            c.KEY(_K),
            c.RKEY((_K,)),
            c.LSET(b"", c.LinkData(b"", b"")),
            c.LDEL(),
            c.NKEY(_K, _K),
            c.NDEL(),
            c.GET(),
            c.ACK(b""),
            c.OFF(),
            c.DEL(),
            c.QUE(),
            c.SKEY(_K),
            c.LKEY(_K),
            c.NSUB(),
            c.NSUBS(0, b""),
        )
    ),
]


@pytest.mark.parametrize(("command", "expected"), _TABLE, ids=[type(row[0]).__name__ for row in _TABLE])
def test_commands(command: Command, expected: tuple[CommandError | None, ...]) -> None:
    assert c.DECLARATIONS[type(command)].credential_errors() == expected


def test_every_command_is_in_the_table() -> None:
    assert {type(row[0]) for row in _TABLE} == set(Command.__args__)


_D = c.LinkData(b"", b"")
_REPLIES: list[tuple[Reply, tuple[CommandError | None, ...]]] = [
    *((reply, (None, None)) for reply in (r.IDS(b"", b"", b""), r.ERR(Simple.AUTH))),
    *(
        (reply, (None, HAS_AUTH))
        for reply in (
            r.PONG(),
            r.PKEY(b"", VersionRange(8, 8), CertChainKey((), b"")),
            r.RRES(b""),
            r.ALLS(),
            r.RNAME(b""),
        )
    ),
    *(
        (reply, (NO_ENTITY, None))
        for reply in (
            r.LNK(b"", _D),
            r.SOK(),
            r.SOKS(0, b""),
            r.MSG(b"", b""),
            r.NID(b"", b""),
            r.NMSG(b"", b""),
            r.PRES(b""),
            r.END(),
            r.ENDS(0, b""),
            r.DELD(),
            r.INFO(b""),
            r.OK(),
        )
    ),
]


@pytest.mark.parametrize(("reply", "expected"), _REPLIES, ids=[type(row[0]).__name__ for row in _REPLIES])
def test_replies(reply: Reply, expected: tuple[CommandError | None, ...]) -> None:
    assert (check_reply(reply, b""), check_reply(reply, b"id")) == expected


def test_every_reply_is_in_the_table() -> None:
    assert {type(row[0]) for row in _REPLIES} == set(Reply.__args__)
