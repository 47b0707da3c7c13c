"""A service's certificate, its subscription, and the messages of a fold."""

from tests.router.fleet import Peer, Queue
from weir.client.smp import Answer
from weir.crypto.certificates import make_self_signed
from weir.transport.smp import ServiceCredentials
from weir.wire.smp import commands as cmd
from weir.wire.smp.commands import ServiceRole
from weir.wire.smp.message import RcvMsgBody
from weir.wire.smp.replies import ALLS, MSG


def credentials(role: ServiceRole = ServiceRole.MESSAGING) -> ServiceCredentials:
    return ServiceCredentials.self_signed(role, make_self_signed())


async def subs(peer: Peer, count: int, hash_: bytes) -> Answer:
    service = peer.smp.connection.service
    assert service is not None
    command = cmd.SUBS(count, hash_) if service.role is ServiceRole.MESSAGING else cmd.NSUBS(count, hash_)
    return await peer.do(command, service.service_id, service.key_pair)


async def until_alls(peer: Peer, queues: list[Queue]) -> dict[bytes, tuple[bytes, bytes]]:
    """The messages of a fold: recipient id → (message id, body)."""
    found = {}
    by_id = {queue.rcv_id: queue for queue in queues}
    while (event := await peer.event()).reply != ALLS():
        assert isinstance(event.reply, MSG), event
        body = by_id[event.entity_id].open(event.reply)
        assert isinstance(body, RcvMsgBody)
        assert event.entity_id not in found
        found[event.entity_id] = event.reply.msg_id, body.body
    return found


async def service_id(peer: Peer) -> bytes:
    assert peer.smp.service_id is not None
    return peer.smp.service_id
