"""Every command and what handles it. (PING is answered in connection.py.)"""

from __future__ import annotations

from weir.router.forwarded import RfwdOp
from weir.router.links import LdelOp, LgetOp, LkeyOp, LsetOp
from weir.router.notifications import NdelOp, NkeyOp, NsubOp
from weir.router.op import Op
from weir.router.proxy import PfwdOp, PrxyOp
from weir.router.queues import DelOp, NewOp, OffOp, RkeyOp, SecureOp
from weir.router.receiving import AckOp, GetOp, QueOp, SubOp
from weir.router.sending import SendOp
from weir.router.services import SubsOp
from weir.wire import commands as cmd

OPS: dict[type[cmd.Command], type[Op]] = {
    cmd.SEND: SendOp,
    cmd.ACK: AckOp,
    cmd.SUB: SubOp,
    cmd.NEW: NewOp,
    cmd.KEY: SecureOp,
    cmd.SKEY: SecureOp,
    cmd.RKEY: RkeyOp,
    cmd.OFF: OffOp,
    cmd.DEL: DelOp,
    cmd.QUE: QueOp,
    cmd.GET: GetOp,
    cmd.LSET: LsetOp,
    cmd.LDEL: LdelOp,
    cmd.LKEY: LkeyOp,
    cmd.LGET: LgetOp,
    cmd.NKEY: NkeyOp,
    cmd.NDEL: NdelOp,
    cmd.NSUB: NsubOp,
    cmd.SUBS: SubsOp,
    cmd.NSUBS: SubsOp,
    cmd.PRXY: PrxyOp,
    cmd.PFWD: PfwdOp,
    cmd.RFWD: RfwdOp,
}
