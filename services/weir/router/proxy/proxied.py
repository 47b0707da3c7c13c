"""The common part of PRXY and PFWD: a command for another router is answered when that router has answered.

Other commands of the connection do not wait for it. The number in progress is limited for each client. If too many
wait for their turn, the client is not read from, because the waiting commands would fill the memory.
"""

from __future__ import annotations

import asyncio

from weir.router.commands.handler import Handler
from weir.router.stats import ProxyStats
from weir.wire.errors import BrokerErrorTag, BrokerErrorType, ErrorType, Proxy, ProxyBroker
from weir.wire.smp.codec import encode_reply
from weir.wire.smp.replies import ERR, Reply

_WAITING = 2  # times the limit of commands in progress; with more, the client is not read from


def broker_error(error: BrokerErrorType) -> ERR:
    return ERR(Proxy(ProxyBroker(error)))


class ProxiedHandler(Handler):
    __slots__ = ()

    def begin(self) -> None:
        error = self.origin.verifier.other(self.t) or self.refused()
        if error is not None:
            self.fail(error)
            return
        session = self.session
        session.forwarding += 1
        too_many = session.forwarding > _WAITING * session.shared.config.proxy.client_concurrency
        if not too_many:
            self.origin.detach(self)
        session.spawn(self._wait_and_work(too_many))

    def refused(self) -> ErrorType | None:
        """Return the error if the command is refused at once."""
        return None

    async def _wait_and_work(self, detach_later: bool) -> None:
        """Wait for a turn among the client's commands. A command that waits too long is answered with TIMEOUT."""
        session = self.session
        try:
            async with asyncio.timeout(session.shared.config.proxy.client_wait):
                await session.forwards.acquire()
        except TimeoutError:
            self._push(broker_error(BrokerErrorTag.TIMEOUT))
            return
        finally:
            session.forwarding -= 1
            if detach_later:
                self.origin.detach(self)
        try:
            self._push(await self.work())
        finally:
            session.forwards.release()

    async def work(self) -> Reply:
        raise NotImplementedError

    def _push(self, reply: Reply) -> None:
        session, command = self.session, self.t.command.__class__
        answers = session.shared.answers
        answers.by_command[command] += 1
        if isinstance(reply, ERR):
            answers.failed(command, reply.error)
        session.outgoing.push(self.t.corr_id, self.t.entity_id, encode_reply(session.framing.version, reply))


class Counted:
    """Counts for all relays, and for the operator's own relays as well."""

    __slots__ = ("_sets",)

    def __init__(self, all_: ProxyStats, own: ProxyStats, is_own: bool) -> None:
        self._sets = (all_, own) if is_own else (all_,)

    def add(self, name: str) -> None:
        for stats in self._sets:
            setattr(stats, name, getattr(stats, name) + 1)
