"""Hypothesis strategies for every type on the wire, and what a version leaves of each."""

from dataclasses import replace
from typing import Any

from cryptography.hazmat.primitives.asymmetric import ec
from hypothesis import strategies as st

from weir.crypto import p256
from weir.crypto.keys import spki
from weir.wire import errors as e
from weir.wire.address import ServerHost, parse_host
from weir.wire.error_codec import for_version
from weir.wire.ntf import handshake as nh
from weir.wire.ntf import types as n
from weir.wire.ntf.device_token import WebPushToken
from weir.wire.smp import commands as c
from weir.wire.smp import handshake as h
from weir.wire.smp import ids_hash
from weir.wire.smp import replies as r
from weir.wire.smp.queue_info import MsgInfo, MsgType, QSub, QueueInfo, SubThread
from weir.wire.versions import VersionRange

SMP_VERSIONS = st.sampled_from([6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19])
NTF_VERSIONS = st.sampled_from([1, 2, 3])

short = st.binary(max_size=255)
ids = st.binary(max_size=32)
some_id = st.binary(min_size=1, max_size=32)
large = st.binary(max_size=600)
int64 = st.integers(-(2**63), 2**63 - 1)
word16 = st.integers(0, 0xFFFF)
raw_key = st.binary(min_size=32, max_size=32)
auth_key = st.one_of(
    raw_key.map(lambda raw: spki("ed25519", raw)),
    raw_key.map(lambda raw: spki("x25519", raw)),
    st.binary(min_size=57, max_size=57).map(lambda raw: spki("ed448", raw)),
)
basic_auth = st.text(st.characters(min_codepoint=0x21, max_codepoint=0x7E, exclude_characters="@:/"), max_size=30).map(
    str.encode
)
host = st.one_of(
    st.just(b"smp.example.org"),
    st.just(b"abcdefghijklmnopqrstuvwx.onion"),
    st.ip_addresses(v=4).map(lambda ip: str(ip).encode()),
    st.ip_addresses(v=6).map(lambda ip: parse_host(ip.packed.hex(":", 2).encode()) or b""),
)
server_host = st.builds(
    ServerHost,
    st.lists(host, min_size=1, max_size=4).map(tuple),
    st.sampled_from([b"", b"5223", b"443"]),
    raw_key,
)
link_data = st.builds(c.LinkData, large, large)
new_ntf_creds = st.builds(c.NewNtfCreds, auth_key, raw_key)
queue_req = st.one_of(
    st.builds(c.MessagingReq, st.none() | st.tuples(ids, link_data)),
    st.builds(c.ContactReq, st.none() | st.tuples(ids, st.tuples(ids, link_data))),
)
domain = st.lists(st.from_regex(r"[a-z0-9]{1,10}(-[a-z0-9]{1,10})?", fullmatch=True), min_size=2, max_size=4).map(
    lambda labels: ".".join(labels).encode()
)
versions = st.tuples(word16, word16).map(lambda pair: VersionRange(min(pair), max(pair)))
cert_chain_key = st.builds(r.CertChainKey, st.lists(large, min_size=1, max_size=5).map(tuple), large)

commands = st.one_of(
    st.builds(
        c.NEW,
        auth_key,
        raw_key,
        st.none() | basic_auth,
        st.booleans(),
        st.none() | queue_req,
        st.none() | new_ntf_creds,
    ),
    st.sampled_from([c.SUB(), c.LDEL(), c.NDEL(), c.GET(), c.OFF(), c.DEL(), c.QUE(), c.PING(), c.LGET(), c.NSUB()]),
    st.builds(c.SUBS, int64, short),
    st.builds(c.NSUBS, int64, short),
    st.builds(c.KEY, auth_key),
    st.builds(c.RKEY, st.lists(auth_key, min_size=1, max_size=5).map(tuple)),
    st.builds(c.LSET, ids, link_data),
    st.builds(c.NKEY, auth_key, raw_key),
    st.builds(c.ACK, short),
    st.builds(c.SKEY, auth_key),
    st.builds(c.SEND, st.booleans(), large),
    st.builds(c.LKEY, auth_key),
    st.builds(c.PRXY, server_host, st.none() | basic_auth),
    st.builds(c.PFWD, word16, raw_key, large),
    st.builds(c.RFWD, large),
    st.builds(c.RSLV, domain),
)


def command_at(version: int, command: c.Command) -> c.Command:
    """The command as the other side decodes it at a version, without fields that the version does not have."""
    if isinstance(command, c.NEW):
        if version < 17:
            command = replace(command, ntf_creds=None)
        if version < 9:
            return replace(command, queue_req=None)
        if version < 15:
            messaging = isinstance(command.queue_req, c.MessagingReq)
            return replace(command, queue_req=c.MessagingReq() if messaging else c.ContactReq())
    elif isinstance(command, (c.SUBS, c.NSUBS)) and version < 19:
        return replace(command, count=-1, ids_hash=ids_hash.EMPTY)
    return command


latin1 = st.text(st.characters(max_codepoint=0xFF), max_size=100)
text = st.text(max_size=60)
transport_error = st.sampled_from([*e.TransportError, *e.HandshakeError])
notice = st.none() | st.sampled_from([b"{}", b'{"ttl":86400}', b'{"ttl":null}'])
blocking_info = st.builds(e.BlockingInfo, st.sampled_from(e.BlockingReason), notice)
broker_error = st.one_of(
    st.sampled_from(e.BrokerErrorTag),
    st.builds(e.BrokerResponse, latin1, st.booleans()),
    st.builds(e.BrokerTransport, transport_error),
)
flat_error = st.one_of(
    st.sampled_from(e.Simple),
    st.sampled_from(e.CommandError),
    st.builds(e.Blocked, blocking_info),
    st.builds(e.Store, text),
    st.builds(e.Name, st.one_of(st.sampled_from(e.NameErrorTag), st.builds(e.NameResolver, text))),
)
errors: st.SearchStrategy[Any] = st.recursive(
    flat_error,
    lambda inner: st.builds(
        e.Proxy,
        st.one_of(
            st.sampled_from(e.ProxyErrorTag), st.builds(e.ProxyProtocol, inner), st.builds(e.ProxyBroker, broker_error)
        ),
    ),
    max_leaves=4,
)
plain_text = st.text(st.characters(min_codepoint=0x20, max_codepoint=0x7E), max_size=30)
queue_info = st.builds(
    QueueInfo,
    st.booleans(),
    st.booleans(),
    st.none() | st.builds(QSub, st.sampled_from(SubThread), st.none() | plain_text),
    st.integers(0, 1000),
    st.none() | st.builds(MsgInfo, plain_text, plain_text, st.sampled_from(MsgType)),
)
replies = st.one_of(
    st.sampled_from([r.ALLS(), r.END(), r.DELD(), r.OK(), r.PONG()]),
    st.builds(
        r.IDS,
        ids,
        ids,
        raw_key,
        st.none() | st.sampled_from(c.QueueMode),
        st.none() | ids,
        st.none() | ids,
        st.none() | st.builds(r.ServerNtfCreds, ids, raw_key),
    ),
    st.builds(r.LNK, ids, link_data),
    st.builds(r.SOK, st.none() | ids),
    st.builds(r.SOKS, int64, short),
    st.builds(r.ENDS, int64, short),
    st.builds(r.MSG, short, large),
    st.builds(r.NID, ids, raw_key),
    st.builds(r.NMSG, st.binary(min_size=24, max_size=24), short),
    st.builds(r.PKEY, ids, versions, cert_chain_key),
    st.builds(r.RRES, large),
    st.builds(r.PRES, large),
    queue_info.map(lambda info: r.INFO(info.to_json())),
    st.builds(r.ERR, errors),
    st.just(r.RNAME(b'{"name":"alice"}')),
)


def reply_at(version: int, reply: r.Reply) -> r.Reply:
    """The reply as the other side decodes it at a version, without fields that the version does not have."""
    if isinstance(reply, r.IDS):
        return _ids_at(version, reply)
    if isinstance(reply, r.SOK) and version < 16:
        return r.OK()
    if isinstance(reply, (r.SOKS, r.ENDS)) and version < 19:
        return replace(reply, ids_hash=ids_hash.EMPTY)
    if isinstance(reply, r.DELD) and version < 10:
        return r.END()
    if isinstance(reply, r.ERR):
        return r.ERR(for_version(version, reply.error))
    return reply


def _ids_at(version: int, reply: r.IDS) -> r.IDS:
    if version < 17:
        reply = replace(reply, ntf_creds=None)
    if version < 16:
        reply = replace(reply, service_id=None)
    if version < 15:
        messaging = reply.queue_mode is c.QueueMode.MESSAGING
        mode = c.QueueMode.MESSAGING if messaging else c.QueueMode.CONTACT
        reply = replace(reply, link_id=None, queue_mode=mode if version >= 9 else None)
    return reply


server_hello = st.builds(h.ServerHello, versions, short, st.none() | cert_chain_key)
client_service = st.builds(h.ClientService, st.sampled_from(c.ServiceRole), cert_chain_key)
client_hello = st.builds(
    h.ClientHello, SMP_VERSIONS, short, st.none() | raw_key, st.booleans(), st.none() | client_service
)
service_response = st.one_of(st.builds(h.ServiceAccepted, short), st.builds(h.ServiceRefused, transport_error))

p256_point = st.integers(1, 2**64).map(
    lambda scalar: p256.point(ec.derive_private_key(scalar, ec.SECP256R1()).public_key())
)
web_push_token = st.builds(
    WebPushToken,
    st.from_regex(r"[a-z0-9]{1,20}(\.[a-z0-9-]{1,20}){0,3}", fullmatch=True),
    st.none() | st.integers(1, 65535),
    st.just("") | st.from_regex(r"/[A-Za-z0-9_~?=&%/-]{0,150}", fullmatch=True),
    st.binary(min_size=16, max_size=16),
    p256_point,
)
device_token = st.one_of(
    st.builds(
        n.DeviceToken, st.sampled_from([one for one in n.PushProvider if one is not n.PushProvider.WEB_PUSH]), short
    ),
    web_push_token.map(lambda token: token.device_token),
)
private_key = st.one_of(
    raw_key.map(lambda raw: bytes.fromhex("302e020100300506032b657004220420") + raw),
    raw_key.map(lambda raw: bytes.fromhex("302e020100300506032b656e04220420") + raw),
    st.binary(min_size=57, max_size=57).map(lambda raw: bytes.fromhex("3047020100300506032b6571043b0439") + raw),
)
ntf_queue = st.builds(n.SmpQueueNtf, server_host, ids)
ntf_commands = st.one_of(
    st.builds(n.TNEW, device_token, auth_key, raw_key),
    st.builds(n.TVFY, short),
    st.builds(n.TRPL, device_token),
    st.builds(n.TCRN, word16),
    st.builds(n.SNEW, ids, ntf_queue, private_key),
    st.sampled_from([n.TCHK(), n.TDEL(), n.SCHK(), n.SDEL(), n.PING()]),
)
token_status = st.one_of(
    st.sampled_from(n.TokenStatus), st.builds(n.TokenInvalid, st.none() | st.sampled_from(n.InvalidReason))
)
sub_status = st.one_of(st.sampled_from(n.SubStatus), st.builds(n.SubError, large))
ntf_replies = st.one_of(
    st.builds(n.IDTKN, ids, raw_key),
    st.builds(n.IDSUB, ids),
    st.sampled_from([n.OK(), n.PONG()]),
    st.builds(n.ERR, errors),
    st.builds(n.TKN, token_status),
    st.builds(n.SUB, sub_status),
)
ntf_server_hello = st.builds(nh.NtfServerHello, versions, short, large)
ntf_client_hello = st.builds(nh.NtfClientHello, word16, short)


def mutated(encoded: st.SearchStrategy[bytes]) -> st.SearchStrategy[bytes]:
    """Arbitrary bytes, and encodings that were cut, lengthened, or had a byte changed."""

    @st.composite
    def broken(draw: st.DrawFn) -> bytes:
        data = bytearray(draw(encoded))
        for _ in range(draw(st.integers(0, 3))):
            at = draw(st.integers(0, len(data)))
            kind = draw(st.integers(0, 2))
            if kind == 0:
                del data[at:]
            elif kind == 1:
                data[at:at] = draw(st.binary(max_size=4))
            elif at < len(data):
                data[at] = draw(st.integers(0, 255))
        return bytes(data)

    return st.one_of(st.binary(max_size=300), broken())
