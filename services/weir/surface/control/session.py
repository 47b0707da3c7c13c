"""One session at the control port: authorisation and the choice of the command. No sockets.

A session gets its role once, by `auth`. A second `auth` shows the role and does not change it. Wrong passwords slow
their address down (backoff.py). The log names a command and never its arguments: queue ids and passwords stay between
the operator and the port.
"""

from __future__ import annotations

import asyncio
import hmac
import logging
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

from weir.surface.control.backoff import Backoff
from weir.surface.control.commands import Command, Commands, Refused, Role
from weir.surface.outage import Outage
from weir.telemetry.errors import log_mistake

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Passwords:
    """A role without a password cannot be taken."""

    admin: str | None = field(default=None, repr=False)
    user: str | None = field(default=None, repr=False)

    def role_of(self, password: str) -> Role:
        for role, expected in ((Role.ADMIN, self.admin), (Role.USER, self.user)):
            if expected is not None and hmac.compare_digest(password.encode(), expected.encode()):
                return role
        return Role.NONE


class Session:
    """`answer` every line in turn, until it is `quit`. The port sets `address` and `backoff`."""

    def __init__(self, passwords: Passwords, commands: Commands, help_text: str, outage: Outage) -> None:
        self.address = ""
        self.backoff = Backoff()
        self._passwords = passwords
        self._help_text = help_text
        self._outage = outage
        self._role = Role.NONE
        self._commands: Commands = {
            "auth": Command(Role.NONE, 1, self._auth),
            "help": Command(Role.NONE, 0, self._help),
            **commands,
        }

    async def answer(self, line: str) -> AsyncIterator[str]:
        """The lines of the answer. An empty line has none."""
        word, _, rest = line.partition(" ")
        if not word:
            return
        command = self._commands.get(word)
        if command is None:
            yield "error: unknown command, try help"
            return
        if self._role.value < command.role.value:
            _log.warning("control port: %s without the right to", word)
            yield "AUTH"
            return
        arguments = rest.split(" ", max(command.words - 1, 0)) if rest else []
        if len(arguments) != command.words:
            yield f"error: {word} takes {command.words} words, try help"
            return
        if word not in ("auth", "help"):
            _log.warning("control port: %s", word)
        try:
            async for text in command.run(self._role, arguments):
                yield text
        except Refused as refusal:
            yield f"error: {refusal}"
        except self._outage.errors:
            yield f"error: {self._outage.text}"
        except Exception as error:
            log_mistake(_log, f"control port: {word} failed", error)
            yield "error: the command failed; the log of this edge says where"

    async def _auth(self, role: Role, arguments: list[str]) -> AsyncIterator[str]:
        if role is not Role.NONE:
            other = "" if self._passwords.role_of(arguments[0]) is role else ", start new session to change."
            yield f"Current role is {_shown(role)}{other}"
            return
        seconds = self.backoff.wait(self.address)
        if seconds:
            raise Refused(f"too many wrong passwords, wait {seconds} s")
        self._role = self._passwords.role_of(arguments[0])
        if self._role is Role.NONE:
            await asyncio.sleep(self.backoff.note_wrong(self.address))
        else:
            self.backoff.note_right(self.address)
        yield f"Current role is {_shown(self._role)}"

    async def _help(self, role: Role, arguments: list[str]) -> AsyncIterator[str]:
        yield self._help_text


def _shown(role: Role) -> str:
    """The reference's name of a role."""
    return f"CPR{role.name.title()}"
