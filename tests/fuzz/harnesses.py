"""One harness per decoder. Each takes arbitrary bytes and fails by raising.

A decoder is total: it returns a value or the protocol's error. What it understood, encoded and decoded again,
is the same. Where a version matters, the first byte chooses it.
"""

from collections.abc import Callable

from weir.crypto.certificates import Chain, certificate_key, days_to_expiry, split_chain, validate_chain
from weir.crypto.session_key import verify_session_key
from weir.wire import error_codec
from weir.wire.address import SmpAddress
from weir.wire.encoding import Malformed
from weir.wire.errors import CommandError, HandshakeError
from weir.wire.ntf import codec as ntf_codec
from weir.wire.ntf import handshake as ntf_handshake
from weir.wire.ntf import push
from weir.wire.ntf import transmission as ntf_transmission
from weir.wire.ntf.device_token import (
    encode_device_token,
    format_device_token,
    parse_device_token,
    read_device_token,
)
from weir.wire.ntf.session import NtfSession
from weir.wire.smp import forward, handshake
from weir.wire.smp.codec import decode_command, decode_reply, encode_command, encode_reply
from weir.wire.smp.parts import read_cert_chain_key
from weir.wire.smp.replies import SOK
from weir.wire.smp.session import Session
from weir.wire.smp.transmission import ClientTransmission, decode_block, decode_replies, encode_client, for_auth

SESSION_ID = bytes(range(32))
SMP_VERSIONS = range(6, 20)
NTF_VERSIONS = range(1, 4)


def _version(data: bytes, versions: range) -> tuple[int, bytes]:
    return versions[(data[0] if data else 0) % len(versions)], data[1:]


def smp_block(data: bytes) -> None:
    version, content = _version(data, SMP_VERSIONS)
    session = Session(SESSION_ID, version)
    transmissions = decode_block(session, content)
    assert transmissions
    for t in transmissions:
        if isinstance(t, ClientTransmission):
            command = encode_command(version, t.command)
            authorized, sent = for_auth(session, t.corr_id, t.entity_id, command)
            [again] = decode_block(session, b"\x01" + encode_client(session, sent, t.auth, t.service_sig))
            assert again == t._replace(authorized=authorized)


def smp_replies(data: bytes) -> None:
    version, content = _version(data, SMP_VERSIONS)
    assert decode_replies(Session(SESSION_ID, version), content)


def smp_command(data: bytes) -> None:
    version, text = _version(data, SMP_VERSIONS)
    command = decode_command(version, text)
    if not isinstance(command, CommandError):
        assert decode_command(version, encode_command(version, command)) == command


def smp_reply(data: bytes) -> None:
    version, text = _version(data, SMP_VERSIONS)
    reply = decode_reply(version, text)
    if not isinstance(reply, (CommandError, SOK)):
        again = encode_reply(version, reply)
        once_more = decode_reply(version, again)
        assert not isinstance(once_more, CommandError)
        assert encode_reply(version, once_more) == again


def smp_error(data: bytes) -> None:
    error = error_codec.decode_error(data)
    if error is not None:
        assert error_codec.decode_error(error_codec.encode_error(error)) == error


def server_hello(data: bytes) -> None:
    hello = handshake.decode_server_hello(data)
    if not isinstance(hello, HandshakeError):
        assert handshake.decode_server_hello(handshake.encode_server_hello(hello)) == hello


def client_hello(data: bytes) -> None:
    hello = handshake.decode_client_hello(data)
    if not isinstance(hello, HandshakeError):
        assert handshake.decode_client_hello(handshake.encode_client_hello(hello)) == hello


def service_response(data: bytes) -> None:
    response = handshake.decode_service_response(data)
    if not isinstance(response, HandshakeError):
        assert handshake.decode_service_response(handshake.encode_service_response(response)) == response


def ntf_command(data: bytes) -> None:
    command = ntf_codec.decode_command(3, data)
    if not isinstance(command, CommandError):
        assert ntf_codec.decode_command(3, ntf_codec.encode_command(3, command)) == command


def ntf_reply(data: bytes) -> None:
    reply = ntf_codec.decode_reply(3, data)
    if not isinstance(reply, CommandError):
        assert ntf_codec.decode_reply(3, ntf_codec.encode_reply(3, reply)) == reply


def ntf_hello(data: bytes) -> None:
    hello = ntf_handshake.decode_server_hello(data)
    if not isinstance(hello, HandshakeError):
        assert ntf_handshake.decode_server_hello(ntf_handshake.encode_server_hello(hello)) == hello
    client = ntf_handshake.decode_client_hello(data)
    if not isinstance(client, HandshakeError):
        assert ntf_handshake.decode_client_hello(ntf_handshake.encode_client_hello(client)) == client


def ntf_block(data: bytes) -> None:
    version, content = _version(data, NTF_VERSIONS)
    session = NtfSession(SESSION_ID, version)
    assert ntf_transmission.decode_block(session, content)
    assert ntf_transmission.decode_replies(session, content)


def address(data: bytes) -> None:
    parsed = SmpAddress.parse(data.decode("utf-8", "surrogateescape"))
    if parsed is not None:
        assert SmpAddress.parse(str(parsed)) == parsed


def push_message(data: bytes) -> None:
    values = push.decode_messages(data)
    if values is not None:
        assert push.decode_messages(push.encode_messages(values)) == values


def device_token(data: bytes) -> None:
    """As bytes and as text."""
    parsed = parse_device_token(data.decode("utf-8", "surrogateescape"))
    if parsed is not None:
        assert parse_device_token(format_device_token(parsed)) == parsed
    try:
        token, end = read_device_token(data, 0)
    except Malformed:
        return
    assert encode_device_token(token) == data[:end]


def forwarded(data: bytes) -> None:
    transmission = forward.decode_fwd_transmission(data)
    if transmission is not None:
        assert forward.encode_fwd_transmission(transmission) == data
    response = forward.decode_fwd_response(data)
    if response is not None:
        assert forward.encode_fwd_response(response) == data
    assert forward.open_forward(SESSION_ID, data[:24], data[24:]) is None
    assert forward.open_response(SESSION_ID, data[:24], data[24:]) is None


def certificate_chain(data: bytes) -> None:
    """As in a hello: the chain, then the signed session key."""
    try:
        cert_key, _ = read_cert_chain_key(data, 0)
    except Malformed:
        return
    problem = validate_chain(cert_key.chain)
    parts = split_chain(cert_key.chain)
    if not isinstance(parts, Chain):
        assert problem is parts
        return
    for certificate in parts:
        key = certificate_key(certificate)
        days_to_expiry(certificate)
        if key is not None:
            verify_session_key(key, cert_key.signed_key)


HARNESSES: dict[str, Callable[[bytes], None]] = {
    one.__name__: one
    for one in (
        smp_block,
        smp_replies,
        smp_command,
        smp_reply,
        smp_error,
        server_hello,
        client_hello,
        service_response,
        ntf_command,
        ntf_reply,
        ntf_hello,
        ntf_block,
        address,
        push_message,
        device_token,
        forwarded,
        certificate_chain,
    )
}
