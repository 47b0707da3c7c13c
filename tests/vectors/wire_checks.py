"""Commands, replies, transmissions, batches, the order of checks, handshakes and whole sessions."""

import re
from collections.abc import Callable, Iterator
from functools import partial
from hashlib import sha256
from typing import Any

from tests.vectors import values
from tests.vectors.fixtures import NoCheck, Vectors
from tests.vectors.outcome import Check, Mismatch, equal, expect
from weir.crypto import block, boxes
from weir.crypto.authenticator import authenticate, sign, verify, verify_signature
from weir.crypto.certificates import fingerprint
from weir.crypto.keys import KeyPair, dh
from weir.wire.errors import CommandError, HandshakeError
from weir.wire.ntf import codec as ntf_codec
from weir.wire.ntf import handshake as ntf_handshake
from weir.wire.smp import commands, handshake, replies
from weir.wire.smp.codec import decode_command, decode_reply, encode_command, encode_reply
from weir.wire.smp.commands import Command, ServiceRole
from weir.wire.smp.parts import cert_chain_key, read_cert_chain_key
from weir.wire.smp.session import Session
from weir.wire.smp.transmission import (
    ClientTransmission,
    ServerTransmission,
    TransmissionError,
    decode_block,
    decode_replies,
    encode_client,
    encode_server,
    fits,
    for_auth,
    pack,
)
from weir.wire.versions import VersionRange

_USE_SERVICE_KEY = (commands.NEW, commands.SUB, commands.NSUB)


def _messages(
    part: str,
    build: Callable[[Vectors, str], object],
    encode: Callable[[int, Any], bytes],
    decode: Callable[[int, bytes], object],
) -> Callable[[Vectors], Iterator[Check]]:
    """Encode what the name says and compare; decode the bytes and compare what that gives when encoded again."""

    def one(vectors: Vectors, entry: dict[str, Any]) -> None:
        version, expected = entry["version"], bytes.fromhex(entry["hex"])
        decoded = decode(version, expected)
        expect(not isinstance(decoded, CommandError), f"bytes that decode, got {decoded}")
        equal(encode(version, decoded), expected)
        try:
            value = build(vectors, entry["name"])
        except (NoCheck, ValueError):  # a name of another kind: both directions have been checked against each other
            expect(expected.startswith(entry["name"].split(" ")[0].encode()), "the name's tag")
            return
        equal(encode(version, value), expected)

    def checks(vectors: Vectors) -> Iterator[Check]:
        for entry in vectors.data[part]:
            yield f"{entry['name']} v{entry['version']}", partial(one, vectors, entry)

    return checks


smp_commands = _messages("smp_commands", values.smp_command, encode_command, decode_command)
smp_responses = _messages("smp_responses", values.smp_reply, encode_reply, decode_reply)
ntf_commands = _messages("ntf_commands", values.ntf_command, ntf_codec.encode_command, ntf_codec.decode_command)
ntf_responses = _messages("ntf_responses", values.ntf_reply, ntf_codec.encode_reply, ntf_codec.decode_reply)


class _Signer:
    """Authorises commands as the entries' client does: with the key that goes with the command."""

    def __init__(self, vectors: Vectors, session: Session, service: bool) -> None:
        self._vectors = vectors
        self._session = session
        self._service = service

    def _key(self, command: Command, auth: bytes) -> KeyPair | None:
        if not auth:
            return None
        if isinstance(command, (commands.SUBS, commands.NSUBS)):
            return self._vectors.key("service_session")
        if len(auth) == 64:
            return self._vectors.key("rcv_auth_ed25519")
        if isinstance(command, (commands.SEND, commands.SKEY, commands.LKEY)):
            return self._vectors.key("snd_auth")
        if isinstance(command, commands.NSUB):
            return self._vectors.key("ntf_auth")
        return self._vectors.key("rcv_auth_x25519")

    def authorize(self, t: ClientTransmission, authorized: bytes) -> tuple[bytes, bytes | None]:
        """The authorisation and the service's signature that `t` should carry; both are verified, too."""
        key = self._key(t.command, t.auth)
        if key is None:
            return b"", None
        service_sig: bytes | None = None
        covered = authorized
        service = self._vectors.key("service_session")
        if self._service and isinstance(t.command, _USE_SERVICE_KEY):
            covered = fingerprint(self._vectors.chain("service_chain_der")[-1]) + authorized
            service_sig = sign("ed25519", service.private, authorized)
            equal(verify_signature("ed25519", service.public, t.service_sig or b"", authorized), True)
        if key.type != "x25519":
            equal(verify_signature(key.type, key.public, t.auth, covered), True)
            return sign(key.type, key.private, covered), service_sig
        nonce = boxes.nonce_of(t.corr_id)
        server = self._vectors.key("srv_session")
        equal(verify(dh(key.public, server.private), nonce, t.auth, covered), True)
        return authenticate(dh(server.public, key.private), nonce, covered), service_sig

    def again(self, t: ClientTransmission) -> bytes:
        """The transmission encoded anew."""
        command = encode_command(self._session.version, t.command)
        authorized, sent = for_auth(self._session, t.corr_id, t.entity_id, command)
        equal(t.authorized, authorized)
        return encode_client(self._session, sent, *self.authorize(t, authorized))


def client_transmissions(vectors: Vectors) -> Iterator[Check]:
    for entry in vectors.data["client_transmissions"]:
        name = f"{entry['name']} v{entry['version']}{' service' if entry['service_session'] else ''}"
        yield name, partial(_client_transmission, vectors, entry)


def _client_transmission(vectors: Vectors, entry: dict[str, Any]) -> None:
    session = Session(vectors.const("session_id"), entry["version"])
    batch = bytes.fromhex(entry["batch_unpadded"])
    [t] = decode_block(session, batch)
    if isinstance(t, TransmissionError):
        raise Mismatch(f"expected a command, got {t.error}")
    words = entry["name"].split(" ")
    equal(type(t.command).__name__, words[0])
    equal(t.entity_id.hex(), entry["entity_id"])
    equal(t.corr_id, vectors.const("corr_id"))
    sizes = {"signed": 64, "x25519": 80, "unsigned": 0}
    equal(len(t.auth), sizes.get(words[1], 0) if len(words) > 1 else 0)
    command = encode_command(session.version, t.command)
    authorized, sent = for_auth(session, t.corr_id, t.entity_id, command)
    equal(authorized.hex(), entry["t_for_auth"])
    equal(sent.hex(), entry["t_to_send"])
    encoded = _Signer(vectors, session, entry["service_session"]).again(t)
    equal(encoded[2:].hex(), entry["t_encoded_with_auth"])
    equal(pack([encoded]), [batch])
    equal(sha256(block.pad_block(batch)).hexdigest(), entry["block_padded_sha256"])


def server_transmissions(vectors: Vectors) -> Iterator[Check]:
    for entry in vectors.data["server_transmissions"]:
        yield f"{entry['name']} v{entry['version']}", partial(_server_transmission, vectors, entry)


def _server_transmission(vectors: Vectors, entry: dict[str, Any]) -> None:
    session = Session(vectors.const("session_id"), entry["version"])
    text = bytes.fromhex(entry["hex"])
    content = b"\x01" + len(text).to_bytes(2, "big") + text
    [t] = decode_replies(session, content)
    expect(type(t.reply).__name__ == entry["name"].split(" ")[0], f"a reply, got {t.reply}")
    tag, _, rest = entry["name"].partition(" ")
    described = values.smp_reply(vectors, f"{tag} {rest}" if tag == "ERR" else tag)
    reply = encode_reply(session.version, described)  # type: ignore[arg-type]
    equal(encode_reply(session.version, t.reply), reply)  # type: ignore[arg-type]
    equal(encode_server(session, t.corr_id, t.entity_id, reply), content[1:])
    pushed = isinstance(t.reply, (replies.MSG, replies.END, replies.ENDS, replies.ALLS))
    equal(t.corr_id, b"" if pushed else vectors.const("corr_id"))
    if isinstance(t.reply, (replies.PONG, replies.ALLS)):
        equal(t.entity_id, b"")
    else:
        of_service = isinstance(t.reply, (replies.SOKS, replies.ENDS))
        equal(t.entity_id, vectors.const("service_id" if of_service else "rcv_id"))


def batches(vectors: Vectors) -> Iterator[Check]:
    for entry in vectors.data["batches"]:
        yield entry["name"], partial(_batches, entry)


def _batches(entry: dict[str, Any]) -> None:
    """All transmissions of a batch are alike: the first, which `head` shows the beginning of, gives the others."""
    groups: list[list[bytes]] = [[]]
    for one in entry["batches"]:
        if "error" in one:
            expect(not fits(bytes(16384)), "a transmission that does not fit")
            groups.append([])
            continue
        size = (one["len"] - 1) // one["count"]
        head = bytes.fromhex(one["head"])[1:]
        equal(int.from_bytes(head[:2], "big") + 2, size)
        fill = head[-1:] if size > len(head) else b""
        groups[-1] += [head[:size] + fill * (size - len(head))] * one["count"]
    number = re.match(r"(\d+) x ", entry["name"])
    if number:
        equal(sum(map(len, groups)), int(number[1]))
    packed = [content for group in groups for content in pack(group)]
    described = [one for one in entry["batches"] if "error" not in one]
    equal([content[0] for content in packed], [one["count"] for one in described])
    equal([len(content) for content in packed], [one["len"] for one in described])
    equal([sha256(content).hexdigest() for content in packed], [one["sha256"] for one in described])
    equal([content[:64].hex() for content in packed], [one["head"] for one in described])


def decode(vectors: Vectors) -> Iterator[Check]:
    for entry in vectors.data["decode"]:
        yield f"{entry['name']} v{entry['version']}", partial(_decode, vectors, entry)


def _decode(vectors: Vectors, entry: dict[str, Any]) -> None:
    session = Session(vectors.const("session_id"), entry["version"])
    found = []
    for t in decode_block(session, bytes.fromhex(entry["batch_hex"])):
        where = f"corr={t.corr_id.hex()} ent={t.entity_id.hex()}"
        if isinstance(t, TransmissionError):
            kind = "CMD " if isinstance(t.error, CommandError) else ""
            found.append(f"ERR {kind}{t.error.value} {where}")  # type: ignore[union-attr]
        else:
            command = encode_command(session.version, t.command).hex()
            found.append(f"CMD {command} {where} auth={'some' if t.auth else 'none'}")
    equal(" ".join(found), entry["result"])


def handshakes(vectors: Vectors) -> Iterator[Check]:
    for entry in vectors.data["handshakes"]:
        version = entry.get("version", entry.get("max_version", ""))
        name = f"{entry['name']} {version} {entry.get('role', '')}".strip()
        yield name, partial(_handshake, vectors, entry)


def _client_hello(vectors: Vectors, entry: dict[str, Any]) -> handshake.ClientHello:
    name, key_hash = entry["name"], vectors.cert("server_ca_fingerprint_sha256")
    service = None
    if "role" in entry:
        service = handshake.ClientService(ServiceRole(entry["role"].encode()), vectors.service_cert_key)
    key = None if "no authPubKey" in name else vectors.key("client_session").public
    return handshake.ClientHello(entry["version"], key_hash, key, "proxyServer=T" in name, service)


def _handshake(vectors: Vectors, entry: dict[str, Any]) -> None:
    name, text = entry["name"], bytes.fromhex(entry["hex"])
    session_id = vectors.const("session_id")
    tag, _, rest = name.partition(" ")
    if tag == "SMPServerHandshake":
        versions = VersionRange(entry["min_version"], entry["max_version"])
        server_hello = handshake.ServerHello(versions, session_id, vectors.server_cert_key)
        _both(handshake.encode_server_hello, handshake.decode_server_hello, server_hello, text)
    elif tag == "SMPClientHandshake":
        _both(handshake.encode_client_hello, handshake.decode_client_hello, _client_hello(vectors, entry), text)
    elif tag in ("SMPServerHandshakeResponse", "SMPServerHandshakeError"):
        response: handshake.ServiceResponse
        if tag == "SMPServerHandshakeResponse":
            response = handshake.ServiceAccepted(vectors.const("service_id"))
        else:
            response = handshake.ServiceRefused(values.transport_error(rest))
        _both(handshake.encode_service_response, handshake.decode_service_response, response, text)
    elif tag == "CertChainPubKey":
        cert_key = vectors.service_cert_key if rest.startswith("service") else vectors.server_cert_key
        equal(cert_chain_key(cert_key), text)
        equal(read_cert_chain_key(text, 0), (cert_key, len(text)))
    elif tag == "NtfServerHandshake":
        versions = VersionRange(entry.get("min_version", 1), entry["max_version"])
        signed = vectors.server_cert_key.signed_key
        ntf_hello = ntf_handshake.NtfServerHello(versions, session_id, signed)
        _both(ntf_handshake.encode_server_hello, ntf_handshake.decode_server_hello, ntf_hello, text)
    elif tag == "NtfClientHandshake":
        ntf_client = ntf_handshake.NtfClientHello(entry["version"], vectors.cert("server_ca_fingerprint_sha256"))
        _both(ntf_handshake.encode_client_hello, ntf_handshake.decode_client_hello, ntf_client, text)
    else:
        raise NoCheck(name)


def _both(encode: Callable[[Any], bytes], decode: Callable[[bytes], object], value: object, text: bytes) -> None:
    equal(encode(value), text)
    decoded = decode(text)
    expect(not isinstance(decoded, HandshakeError), "a handshake that decodes")
    equal(encode(decoded), text)
    equal(type(decoded), type(value))
    equal(encode(decode(text + b" what later versions may add")), text)


def sessions(vectors: Vectors) -> Iterator[Check]:
    for number, entry in enumerate(vectors.data["sessions"]):
        role = bytes.fromhex(entry["service_role"]).decode() if entry["service_role"] else "-"
        kind = " proxy" if entry["proxy_server"] else ""
        name = f"{number}: v{entry['version']} role {role}{kind}"
        yield f"{name} handshake", partial(_session_handshake, vectors, entry)
        yield f"{name} blocks", partial(_session_blocks, vectors, entry)


def _session_handshake(vectors: Vectors, entry: dict[str, Any]) -> None:
    version = entry["agreed_version"]
    role = ServiceRole(bytes.fromhex(entry["service_role"])) if entry["service_role"] else None
    server = [bytes.fromhex(text) for text in entry["server_handshake_unpadded"]]
    [client] = [bytes.fromhex(text) for text in entry["client_handshake_unpadded"]]
    versions = VersionRange(6, version)
    hello = handshake.ServerHello(versions, vectors.const("session_id"), vectors.server_cert_key)
    _both(handshake.encode_server_hello, handshake.decode_server_hello, hello, server[0])
    service = None if role is None else handshake.ClientService(role, vectors.service_cert_key)
    client_hello = handshake.ClientHello(
        version,
        vectors.cert("server_ca_fingerprint_sha256"),
        vectors.key("client_session").public,
        entry["proxy_server"],
        service,
    )
    _both(handshake.encode_client_hello, handshake.decode_client_hello, client_hello, client)
    expected = [] if role is None else [handshake.ServiceAccepted(vectors.const("service_id"))]
    equal([handshake.decode_service_response(text) for text in server[1:]], expected)
    equal(vectors.raw_secret("client_session", "srv_session").hex(), entry["session_dh_secret"])
    equal(version >= 11 and not entry["proxy_server"], entry["block_encrypted"])
    equal(Session(b"", version).service_auth, entry["service_auth"])


def _session_blocks(vectors: Vectors, entry: dict[str, Any]) -> None:
    session = Session(vectors.const("session_id"), entry["agreed_version"])
    secret = bytes.fromhex(entry["session_dh_secret"])
    both = block.init_chains(session.session_id, secret)
    if entry["block_encrypted"]:
        for chain, steps in zip(
            block.init_chains(session.session_id, secret), entry["block_keys"].values(), strict=True
        ):
            for step in steps:
                equal(chain.next(), (bytes.fromhex(step["key"]), bytes.fromhex(step["nonce"])))
    again = block.init_chains(session.session_id, secret)
    signer = _Signer(vectors, session, entry["service_role"] is not None)
    parsed = 0
    for side, blocks in ((1, entry["client_blocks"]), (0, entry["server_blocks"])):
        for one in blocks:
            content = _open(entry["block_encrypted"], both[side], one)
            if side:
                transmissions = decode_block(session, content)
                expect(all(isinstance(t, ClientTransmission) for t in transmissions), "commands")
                commands_ = [t for t in transmissions if isinstance(t, ClientTransmission)]
                expect(all(t.corr_id == vectors.const("corr_id") for t in commands_), "the file's correlation id")
                parsed += len(commands_)
                encoded = [signer.again(t) for t in commands_]
            else:
                encoded = [_reply_again(vectors, session, t) for t in decode_replies(session, content)]
            equal(pack(encoded), [content])
            _seal(entry["block_encrypted"], again[side], content, one)
    equal(parsed, entry["server_parsed_ok"])


def _reply_again(vectors: Vectors, session: Session, t: ServerTransmission) -> bytes:
    """Ids in whole sessions are the file's own."""
    expect(t.corr_id in (b"", vectors.const("corr_id")), "a correlation id")
    expect(t.entity_id in (b"", *map(vectors.const, ("rcv_id", "snd_id", "ntf_id", "service_id"))), "an entity id")
    expect(type(t.reply).__module__ == replies.__name__, f"a reply, got {t.reply}")
    return encode_server(session, t.corr_id, t.entity_id, encode_reply(session.version, t.reply))  # type: ignore[arg-type]


def _open(encrypted: bool, chain: block.ChainKey, one: dict[str, Any]) -> bytes:
    if not encrypted:
        return bytes.fromhex(one["unpadded"])
    content = block.open_block(chain, bytes.fromhex(one["hex"]))
    if content is None:
        raise Mismatch("the block does not open")
    return content


def _seal(encrypted: bool, chain: block.ChainKey, content: bytes, one: dict[str, Any]) -> None:
    sealed = block.seal_block(chain, content) if encrypted else block.pad_block(content)
    equal(len(sealed), one["len"])
    if encrypted:
        equal(sealed, bytes.fromhex(one["hex"]))
        equal(sha256(sealed).hexdigest(), one["sha256"])
    else:
        equal(boxes.unpad(sealed), content)
