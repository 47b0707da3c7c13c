"""The value that an entry's name describes: `NEW x25519 no-auth S messaging no-link` → NEW(…).

The names are a small language; anything in it is understood, not only what the file happens to contain.
"""

import re
from collections.abc import Callable

from tests.vectors.fixtures import NoCheck, Vectors
from weir.wire import errors
from weir.wire.ntf import types as ntf
from weir.wire.smp import commands, ids_hash, replies
from weir.wire.smp.commands import ContactReq, MessagingReq, NewNtfCreds, QueueMode, QueueReq
from weir.wire.smp.queue_info import MsgInfo, MsgType, QSub, QueueInfo, SubThread
from weir.wire.versions import VersionRange


def _repeated(text: str) -> bytes:
    """`ee*30` and `0x61*4000` are repeated bytes; other texts are themselves."""
    found = re.fullmatch(r"(?:0x)?([0-9a-f]{2})\*(\d+)", text)
    return bytes.fromhex(found[1]) * int(found[2]) if found else text.encode()


def _option(text: str, name: str) -> str | None:
    found = re.search(rf"(?:^| ){name}=(\S+)", text)
    return found[1] if found else None


def _auth_key(vectors: Vectors, text: str, x25519: str = "rcv_auth_x25519") -> bytes:
    return vectors.key("rcv_auth_ed25519" if "ed25519" in text else x25519).spki


def _new(vectors: Vectors, text: str) -> commands.NEW:
    words = text.split(" ")
    auth = _option(text, "auth")
    req: QueueReq | None = None
    has_link = "with link data" in text
    if "messaging" in words:
        req = MessagingReq((vectors.const("snd_id"), vectors.link_data) if has_link else None)
    elif "contact" in words:
        link = (vectors.const("link_id"), (vectors.const("snd_id"), vectors.link_data))
        req = ContactReq(link if has_link else None)
    elif "queueReqData=Nothing" not in words:
        raise NoCheck(text)
    creds = NewNtfCreds(vectors.key("ntf_auth").spki, vectors.key("rcv_ntf_dh").public)
    return commands.NEW(
        _auth_key(vectors, words[0]),
        vectors.key("rcv_dh").public,
        auth.encode() if auth else None,
        "S" in words,
        req,
        creds if "ntf creds" in text else None,
    )


def _counted(vectors: Vectors, text: str) -> tuple[int, bytes]:
    count = _option(text, "n")
    if count is None:
        raise NoCheck(text)
    return int(count), ids_hash.EMPTY if "empty hash" in text else vectors.two_ids_hash


def _rkey(vectors: Vectors, text: str) -> commands.RKEY:
    keys = (vectors.key("rcv_auth_x25519").spki, vectors.key("rcv_auth_ed25519").spki)
    return commands.RKEY(keys[: int(text.split(" ")[0])])


def _prxy(vectors: Vectors, text: str) -> commands.PRXY:
    auth = _option(text, "auth")
    server = vectors.two_hosts if text.startswith("2 hosts") else vectors.one_host
    return commands.PRXY(server, auth.encode() if auth else None)


def _send(_: Vectors, text: str) -> commands.SEND:
    return commands.SEND(_option(text, "notification") == "T", _repeated(_option(text, "body") or ""))


def _pfwd(vectors: Vectors, text: str) -> commands.PFWD:
    return commands.PFWD(
        int(_option(text, "v") or 0), vectors.key("proxy_cmd").public, _repeated(_option(text, "enc") or "")
    )


_COMMANDS: dict[str, Callable[[Vectors, str], commands.Command]] = {
    "NEW": _new,
    "SUB": lambda _, __: commands.SUB(),
    "SUBS": lambda vectors, text: commands.SUBS(*_counted(vectors, text)),
    "KEY": lambda vectors, text: commands.KEY(_auth_key(vectors, text, "snd_auth")),
    "RKEY": _rkey,
    "LSET": lambda vectors, _: commands.LSET(vectors.const("link_id"), vectors.link_data),
    "LDEL": lambda _, __: commands.LDEL(),
    "NKEY": lambda vectors, _: commands.NKEY(vectors.key("ntf_auth").spki, vectors.key("rcv_ntf_dh").public),
    "NDEL": lambda _, __: commands.NDEL(),
    "GET": lambda _, __: commands.GET(),
    "ACK": lambda vectors, text: commands.ACK(b"" if text == "empty" else vectors.const("msg_id")),
    "OFF": lambda _, __: commands.OFF(),
    "DEL": lambda _, __: commands.DEL(),
    "QUE": lambda _, __: commands.QUE(),
    "SKEY": lambda vectors, text: commands.SKEY(_auth_key(vectors, text, "snd_auth")),
    "SEND": _send,
    "PING": lambda _, __: commands.PING(),
    "LKEY": lambda vectors, text: commands.LKEY(_auth_key(vectors, text, "snd_auth")),
    "LGET": lambda _, __: commands.LGET(),
    "NSUB": lambda _, __: commands.NSUB(),
    "NSUBS": lambda vectors, text: commands.NSUBS(*_counted(vectors, text)),
    "PRXY": _prxy,
    "PFWD": _pfwd,
    "RFWD": lambda _, text: commands.RFWD(_repeated(_option(text, "enc") or "")),
    "RSLV": lambda _, text: commands.RSLV(text.encode()),
}


def _from(table: dict[str, Callable[[Vectors, str], object]], vectors: Vectors, name: str) -> object:
    tag, _, text = name.partition(" ")
    if tag not in table:
        raise NoCheck(f"{tag} is not known")
    return table[tag](vectors, text)


def smp_command(vectors: Vectors, name: str) -> object:
    return _from(dict(_COMMANDS), vectors, name)


def transport_error(text: str) -> errors.TransportErrorType:
    if text.startswith("HANDSHAKE "):
        return errors.HandshakeError(text[10:])
    return errors.TransportError(text)


def _broker_error(text: str) -> errors.BrokerErrorType:
    tag, _, rest = text.partition(" ")
    if tag in ("RESPONSE", "UNEXPECTED"):
        return errors.BrokerResponse(rest, unexpected=tag == "UNEXPECTED")
    if tag == "TRANSPORT":
        return errors.BrokerTransport(transport_error(rest))
    return errors.BrokerErrorTag(tag)


def _proxy_error(text: str) -> errors.Proxy:
    tag, _, rest = text.partition(" ")
    if tag == "PROTOCOL":
        return errors.Proxy(errors.ProxyProtocol(smp_error(rest)))
    if tag == "BROKER":
        return errors.Proxy(errors.ProxyBroker(_broker_error(rest)))
    return errors.Proxy(errors.ProxyErrorTag(tag))


def _blocked(text: str) -> errors.Blocked:
    reason, _, notice = text.removeprefix("reason=").partition(",notice=")
    return errors.Blocked(errors.BlockingInfo(errors.BlockingReason(reason), notice.encode() if notice else None))


def smp_error(text: str) -> errors.ErrorType:
    tag, _, rest = text.partition(" ")
    if tag == "CMD":
        return errors.CommandError(rest)
    if tag == "PROXY":
        return _proxy_error(rest)
    if tag == "BLOCKED":
        return _blocked(rest)
    if tag == "STORE":
        return errors.Store(rest)
    if tag == "NAME":
        if rest.startswith("RESOLVER"):
            return errors.Name(errors.NameResolver(rest[9:]))
        return errors.Name(errors.NameErrorTag(rest))
    return errors.Simple(tag)


def _ids(vectors: Vectors, text: str) -> replies.IDS:
    words = text.split(" ")
    modes = {"messaging": QueueMode.MESSAGING, "contact": QueueMode.CONTACT}
    creds = replies.ServerNtfCreds(vectors.const("ntf_id"), vectors.key("srv_ntf_dh").public)
    return replies.IDS(
        vectors.const("rcv_id"),
        vectors.const("snd_id"),
        vectors.key("srv_dh").public,
        modes.get(words[0]),
        vectors.const("link_id") if "link" in words else None,
        vectors.const("service_id") if "service" in words else None,
        creds if "ntfcreds" in words else None,
    )


_THREADS = {
    "QNoSub": SubThread.NO_SUB,
    "QSubPending": SubThread.SUB_PENDING,
    "QSubThread": SubThread.SUB_THREAD,
    "QProhibitSub": SubThread.PROHIBIT_SUB,
}
_STAMP = "2023-11-14T22:13:20Z"


def _info(_: Vectors, text: str) -> replies.INFO:
    if text == "empty":
        info = QueueInfo(False, False, None, 0, None)
    elif text == "full":
        message = MsgInfo("bXNn", _STAMP, MsgType.MESSAGE)
        info = QueueInfo(True, True, QSub(SubThread.SUB_THREAD, "d3N0"), 3, message)
    else:
        thread, message_type = _option(text, "sub"), _option(text, "msg")
        if thread not in _THREADS or message_type not in (None, "MTQuota"):
            raise NoCheck(text)
        quota = MsgInfo("bXNn", "2023-11-14T22:13:20.123456789Z", MsgType.QUOTA) if message_type else None
        info = QueueInfo(True, False, QSub(_THREADS[thread]), 1 if quota else 0, quota)
    return replies.INFO(info.to_json())


def _pkey(vectors: Vectors, text: str) -> replies.PKEY:
    low, high = (_option(text, "vr") or "0..0").split("..")
    return replies.PKEY(vectors.const("session_id"), VersionRange(int(low), int(high)), vectors.server_cert_key)


_REPLIES: dict[str, Callable[[Vectors, str], object]] = {
    "IDS": _ids,
    "LNK": lambda vectors, _: replies.LNK(vectors.const("snd_id"), vectors.link_data),
    "SOK": lambda vectors, text: replies.SOK(vectors.const("service_id") if text == "service" else None),
    "SOKS": lambda vectors, text: replies.SOKS(*_counted(vectors, text)),
    "ENDS": lambda vectors, text: replies.ENDS(*_counted(vectors, text or "n=2")),
    "MSG": lambda vectors, text: replies.MSG(vectors.const("msg_id"), _repeated(_option(text, "body") or "ee*30")),
    "ALLS": lambda _, __: replies.ALLS(),
    "NID": lambda vectors, _: replies.NID(vectors.const("ntf_id"), vectors.key("srv_ntf_dh").public),
    "NMSG": lambda vectors, text: replies.NMSG(
        vectors.const(_option(text, "nonce") or ""), _repeated(_option(text, "meta") or "")
    ),
    "PKEY": _pkey,
    "RRES": lambda _, text: replies.RRES(_repeated(text)),
    "PRES": lambda _, text: replies.PRES(_repeated(text)),
    "END": lambda _, __: replies.END(),
    "DELD": lambda _, __: replies.DELD(),
    "INFO": _info,
    "OK": lambda _, __: replies.OK(),
    "ERR": lambda _, text: replies.ERR(smp_error(text)),
    "PONG": lambda _, __: replies.PONG(),
}


def smp_reply(vectors: Vectors, name: str) -> object:
    return _from(_REPLIES, vectors, name)


def _token(text: str) -> ntf.DeviceToken:
    provider, token = text.split(" ")[:2]
    return ntf.DeviceToken(ntf.PushProvider(provider.encode()), token.encode())


def _snew(vectors: Vectors, text: str) -> ntf.SNEW:
    key = vectors.key("rcv_auth_ed25519" if text.endswith("ed25519") else "ntf_auth")
    hosts = vectors.two_hosts if "2 hosts" in text else vectors.one_host
    queue = ntf.SmpQueueNtf(hosts, vectors.const("ntf_id"))
    return ntf.SNEW(vectors.const(_option(text, "tknId") or ""), queue, key.pkcs8)


def _tnew(vectors: Vectors, text: str) -> ntf.TNEW:
    verify = vectors.key("ntf_auth" if "x25519" in text else "rcv_auth_ed25519")
    return ntf.TNEW(_token(text), verify.spki, vectors.key("rcv_ntf_dh").public)


_NTF_COMMANDS: dict[str, Callable[[Vectors, str], object]] = {
    "TNEW": _tnew,
    "TVFY": lambda vectors, text: ntf.TVFY(vectors.const(_option(text, "code") or "")),
    "TCHK": lambda _, __: ntf.TCHK(),
    "TRPL": lambda _, text: ntf.TRPL(_token(text)),
    "TDEL": lambda _, __: ntf.TDEL(),
    "TCRN": lambda _, text: ntf.TCRN(int(text)),
    "SNEW": _snew,
    "SCHK": lambda _, __: ntf.SCHK(),
    "SDEL": lambda _, __: ntf.SDEL(),
    "PING": lambda _, __: ntf.PING(),
}


def ntf_command(vectors: Vectors, name: str) -> object:
    return _from(_NTF_COMMANDS, vectors, name)


def _tkn(_: Vectors, text: str) -> ntf.TKN:
    if text.startswith("INVALID"):
        reason = text.partition(",")[2]
        return ntf.TKN(ntf.TokenInvalid(ntf.InvalidReason(reason) if reason else None))
    return ntf.TKN(ntf.TokenStatus(text))


def _ntf_sub(_: Vectors, text: str) -> ntf.SUB:
    return ntf.SUB(ntf.SubError(text[4:].encode()) if text.startswith("ERR ") else ntf.SubStatus(text))


_NTF_REPLIES: dict[str, Callable[[Vectors, str], object]] = {
    "IDTKN": lambda vectors, _: ntf.IDTKN(vectors.const("service_id"), vectors.key("srv_ntf_dh").public),
    "IDSUB": lambda vectors, _: ntf.IDSUB(vectors.const("service_id")),
    "OK": lambda _, __: ntf.OK(),
    "ERR": lambda _, text: ntf.ERR(smp_error(text)),
    "PONG": lambda _, __: ntf.PONG(),
    "TKN": _tkn,
    "SUB": _ntf_sub,
}


def ntf_reply(vectors: Vectors, name: str) -> object:
    return _from(_NTF_REPLIES, vectors, name)
