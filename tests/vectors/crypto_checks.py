"""Keys, certificates, boxes, authenticators, message encryption, the proxy's two layers, idsHash."""

import re
from collections.abc import Iterator
from datetime import timedelta
from functools import partial
from hashlib import sha256
from typing import Any

from cryptography.x509 import load_der_x509_certificate

from tests.vectors.fixtures import NoCheck, Vectors
from tests.vectors.outcome import Check, equal, expect
from weir.crypto import boxes
from weir.crypto.authenticator import authenticate, sign, verify, verify_signature
from weir.crypto.certificates import Chain, certificate_key, fingerprint, split_chain, validate_chain
from weir.crypto.keys import (
    KeyPair,
    pack_key,
    packed_spki,
    parse_private,
    parse_spki,
    public_of,
)
from weir.crypto.session_key import sign_session_key, verify_session_key
from weir.wire.ntf.push import PNMessageData, decode_messages, encode_messages
from weir.wire.ntf.types import SmpQueueNtf
from weir.wire.smp import forward, ids_hash, message
from weir.wire.smp.codec import encode_command, encode_reply
from weir.wire.smp.commands import SEND
from weir.wire.smp.parts import sender_id_of
from weir.wire.smp.replies import OK
from weir.wire.smp.session import Session
from weir.wire.smp.transmission import (
    ClientTransmission,
    ServerTransmission,
    decode_block,
    decode_replies,
    encode_client,
    encode_server,
    for_auth,
    pack,
)
from weir.wire.versions import SMP_BLOCK_SIZE, max_message_length


def consts(vectors: Vectors) -> Iterator[Check]:
    """The computed ones; the others are what the rest is made from."""
    data = vectors.data["consts"]
    lengths = data.get("max_message_length_by_version", [])
    computed = {
        "ids_hash_of_rcv_id_and_snd_id": vectors.two_ids_hash.hex(),
        "max_message_length_by_version": [[version, max_message_length(version)] for version, _ in lengths],
        "padded_proxied_t_length": forward.PROXIED_LENGTH,
        "smp_block_size": SMP_BLOCK_SIZE,
    }
    for name, value in computed.items():
        if name in data:
            yield name, partial(equal, value, data[name])


def keys(vectors: Vectors) -> Iterator[Check]:
    for entry in vectors.data["keys"]:
        yield entry["name"], partial(_key, vectors, entry)


def _key(vectors: Vectors, entry: dict[str, str]) -> None:
    pair = vectors.key(entry["name"])
    equal(public_of(pair.type, pair.private), pair.public)
    spki, pkcs8 = bytes.fromhex(entry["public_spki_der"]), bytes.fromhex(entry["private_pkcs8_der"])
    equal(pair.spki, spki)
    equal(pair.pkcs8, pkcs8)
    equal(parse_spki(spki), (pair.type, pair.public))
    equal(parse_private(pkcs8), (pair.type, pair.private))
    equal(packed_spki(pack_key(spki)), spki)


def certs(vectors: Vectors) -> Iterator[Check]:
    def chain(name: str, key: str, print_name: str) -> None:
        ders = vectors.chain(name)
        in_time = load_der_x509_certificate(ders[0]).not_valid_before_utc + timedelta(days=1)
        equal(validate_chain(ders, in_time), None)
        parts = split_chain(ders)
        expect(isinstance(parts, Chain), "a chain")
        assert isinstance(parts, Chain)
        leaf = vectors.server_leaf if key.startswith("server") else vectors.service_leaf
        equal(certificate_key(parts.leaf), (leaf.type, leaf.public))
        equal(fingerprint(parts.identity).hex(), vectors.data["certs"][print_name])

    def signed(name: str, signer: KeyPair, session_key: str) -> None:
        der, session = vectors.cert(name), vectors.key(session_key)
        equal(sign_session_key(signer, session.spki), der)
        equal(verify_session_key((signer.type, signer.public), der), (session.type, session.public))
        broken = der[:-1] + bytes((der[-1] ^ 1,))
        equal(verify_session_key((signer.type, signer.public), broken), None)

    server, service = (
        ("server_chain_der", "server_ca_fingerprint_sha256"),
        (
            "service_chain_der",
            "service_cert_fingerprint_sha256",
        ),
    )
    checks = {
        "server_chain_der": lambda: chain(server[0], "server", server[1]),
        "server_ca_fingerprint_sha256": lambda: chain(server[0], "server", server[1]),
        "server_leaf_private_pkcs8_der": lambda: chain(server[0], "server", server[1]),
        "service_chain_der": lambda: chain(service[0], "service", service[1]),
        "service_cert_fingerprint_sha256": lambda: chain(service[0], "service", service[1]),
        "service_cert_private_pkcs8_der": lambda: chain(service[0], "service", service[1]),
        "signed_server_session_key_der": lambda: signed(
            "signed_server_session_key_der", vectors.server_leaf, "srv_session"
        ),
        "signed_service_session_key_der": lambda: signed(
            "signed_service_session_key_der", vectors.service_leaf, "service_session"
        ),
    }
    for name in vectors.data["certs"]:
        yield name, checks.get(name)


def authenticators(vectors: Vectors) -> Iterator[Check]:
    for entry in vectors.data["authenticators"]:
        yield f"of {entry['message'][:20]}", partial(_authenticator, vectors, entry)


def _authenticator(vectors: Vectors, entry: dict[str, Any]) -> None:
    text = bytes.fromhex(entry["message"])
    if "authenticator" in entry:
        client, server = vectors.key(entry["client_priv"]), vectors.key(entry["server_pub"])
        nonce, expected = bytes.fromhex(entry["nonce"]), bytes.fromhex(entry["authenticator"])
        secret = vectors.secret(entry["server_pub"], entry["client_priv"])
        equal(authenticate(secret, nonce, text), expected)
        from_server = boxes.hsalsa20(vectors.raw_secret(entry["client_priv"], entry["server_pub"]))
        equal(verify(from_server, nonce, expected, text), entry["verifies_with_server_priv"])
        equal(verify(from_server, nonce, expected, text + b"!"), False)
        del client, server
        return
    for kind in ("ed25519", "ed448"):
        if f"{kind}_priv" in entry:
            pair, signature = vectors.key(entry[f"{kind}_priv"]), bytes.fromhex(entry["signature"])
            equal(sign(pair.type, pair.private, text), signature)
            equal(verify_signature(pair.type, pair.public, signature, text), True)
            equal(verify_signature(pair.type, pair.public, signature, text + b"!"), False)
            return
    raise NoCheck("neither an authenticator nor a signature")


def crypto(vectors: Vectors) -> Iterator[Check]:
    for entry in vectors.data["crypto"]:
        yield entry["name"], partial(_crypto, vectors, entry)


def _crypto(vectors: Vectors, entry: dict[str, str]) -> None:
    name, expected = entry["name"], bytes.fromhex(entry["hex"])
    quoted = re.search(r"'([^']*)'", name)
    text = quoted[1].encode() if quoted else b""
    secret, nonce = vectors.secret("rcv_dh", "srv_dh"), vectors.const("corr_id")
    if name.startswith("cbEncryptNoPad "):
        equal(boxes.cb_encrypt_no_pad(secret, nonce, text), expected)
        equal(boxes.cb_decrypt_no_pad(secret, nonce, expected), text)
    elif found := re.match(r"cbEncrypt '.*' padded to (\d+)", name):
        equal(boxes.cb_encrypt(secret, nonce, text, int(found[1])), expected)
        equal(boxes.cb_decrypt(secret, nonce, expected), text)
    elif found := re.match(r"pad '.*' (\d+)", name):
        equal(boxes.pad(text, int(found[1])), expected)
        equal(boxes.unpad(expected), text)
    elif found := re.match(r"reverseNonce (\w+)", name):
        equal(boxes.reverse_nonce(vectors.const(found[1])), expected)
        equal(boxes.reverse_nonce(expected), vectors.const(found[1]))
    elif name.startswith("cbNonce of "):
        equal(boxes.nonce_of(text), expected)
    elif found := re.match(r"sha3_384\((\w+)\)", name):
        equal(sender_id_of(vectors.const(found[1])), expected)
    elif found := re.match(r"md5 (\w+)", name):
        equal(ids_hash.of_id(vectors.const(found[1])), expected)
    else:
        raise NoCheck(name)


def ids_hashes(vectors: Vectors) -> Iterator[Check]:
    for entry in vectors.data["ids_hash"]:
        name = entry.get("op") or f"{len(entry['ids'])} ids"
        yield name, partial(_ids_hash, vectors, entry)


def _ids_hash(vectors: Vectors, entry: dict[str, Any]) -> None:
    expected = bytes.fromhex(entry["hash"])
    if "ids" in entry:
        ids = [bytes.fromhex(one) for one in entry["ids"]]
        equal(ids_hash.of_ids(ids), expected)
        total = ids_hash.EMPTY
        for one in ids:
            total = ids_hash.add(total, ids_hash.of_id(one))
        equal(total, expected)
        return
    found = re.match(r"(add|subtract) \((\d+),(\w+)\) (?:to|from) \((\d+),\[([\w,]*)\]\)", entry["op"])
    if found is None:
        raise NoCheck(entry["op"])
    names = {"rcvId": "rcv_id", "sndId": "snd_id", "ntfId": "ntf_id", "linkId": "link_id", "serviceId": "service_id"}
    ids = [vectors.const(names[name]) for name in found[5].split(",") if name]
    part = (int(found[2]), ids_hash.of_id(vectors.const(names[found[3]])))
    total_subs = (int(found[4]), ids_hash.of_ids(ids))
    if found[1] == "add":
        result = total_subs[0] + part[0], ids_hash.add(total_subs[1], part[1])
    else:
        result = ids_hash.subtract_subs(total_subs, part)
    equal(result, (entry["count"], expected))


def msg_encryption(vectors: Vectors) -> Iterator[Check]:
    data = vectors.data["msg_encryption"]
    raw = bytes.fromhex(data["dh_secret_raw_x25519"])
    msg_id = bytes.fromhex(data["nonce_is_msg_id"])
    yield "dh_secret_raw_x25519", lambda: equal(vectors.raw_secret("rcv_dh", "srv_dh"), raw)
    for entry in data["vectors"]:
        yield entry["name"], partial(_message, vectors, boxes.hsalsa20(raw), msg_id, entry)


def _message(vectors: Vectors, secret: bytes, msg_id: bytes, entry: dict[str, Any]) -> None:
    ts = vectors.data["consts"]["msg_ts_seconds"]
    found = re.fullmatch(r"body=(?:0x([0-9a-f]{2})\*(\d+)|(\S+)) (?:notification=)?([TF])", entry["name"])
    plain: message.RcvMsgBody | message.RcvMsgQuota
    if entry["name"] == "QUOTA":
        plain = message.RcvMsgQuota(ts)
        encrypted = message.encrypt_quota(secret, msg_id, ts)
    elif found:
        body = bytes.fromhex(found[1]) * int(found[2]) if found[1] else found[3].encode()
        plain = message.RcvMsgBody(ts, found[4] == "T", body)
        encrypted = message.encrypt_message(secret, msg_id, ts, plain.notification, body)
    else:
        raise NoCheck(entry["name"])
    padded = boxes.pad(message.encode_body(plain), message.PADDED_LENGTH)
    equal(len(padded), entry["plain_padded_len"])
    equal(padded[:64].hex(), entry["plain_padded_head64"])
    expect(message.encode_body(plain).hex().startswith(entry["plain_unpadded"]), "plain_unpadded")
    equal(len(encrypted), entry["enc_len"])
    equal(encrypted[:64].hex(), entry["enc_head64"])
    equal(encrypted[-16:].hex(), entry["enc_tail16"])
    equal(sha256(encrypted).hexdigest(), entry["enc_sha256"])
    equal(message.decrypt_message(secret, msg_id, encrypted), plain)


def nmsg(vectors: Vectors) -> Iterator[Check]:
    data = vectors.data["nmsg"]
    raw, nonce = bytes.fromhex(data["dh_secret"]), bytes.fromhex(data["nonce"])
    meta = message.NMsgMeta(vectors.const("msg_id"), vectors.data["consts"]["msg_ts_seconds"])
    encrypted, plain = bytes.fromhex(data["enc_meta"]), bytes.fromhex(data["meta_plain"])

    def enc_meta() -> None:
        equal(message.encrypt_nmsg_meta(boxes.hsalsa20(raw), nonce, meta), encrypted)
        equal(message.decrypt_nmsg_meta(boxes.hsalsa20(raw), nonce, encrypted), meta)

    def meta_plain() -> None:
        equal(message.encode_nmsg_meta(meta), plain)
        equal(message.decode_nmsg_meta(plain), meta)

    def push() -> None:
        text = data["pn_message_data_str"].encode()
        queue = SmpQueueNtf(vectors.two_hosts, vectors.const("ntf_id"))
        values = [PNMessageData(queue, meta.ts + n, nonce, encrypted) for n in range(text.count(b";") + 1)]
        equal(encode_messages(values), text)
        equal(decode_messages(text), values)

    checks = {
        "dh_secret": lambda: equal(vectors.raw_secret("rcv_ntf_dh", "srv_ntf_dh"), raw),
        "nonce": lambda: equal(vectors.const("corr_id"), nonce),
        "enc_meta": enc_meta,
        "meta_plain": meta_plain,
        "pn_message_data_str": push,
    }
    for name in data:
        yield name, checks.get(name)


def proxy(vectors: Vectors) -> Iterator[Check]:
    """A SEND through a proxy: client → proxy (PFWD) → relay (RFWD) → proxy (RRES) → client (PRES)."""
    data = vectors.data["proxy"]
    corr_id, snd_id = vectors.const("corr_id"), vectors.const("snd_id")
    version = int((re.search(r"fwd version (\d+)", data["description"]) or [0, 17])[1])
    relay = Session(bytes.fromhex(data["relay_session_id"]), version)
    inner_secret, outer_secret = (
        vectors.secret("srv_session", "proxy_cmd"),
        vectors.secret("srv_session", "proxy_session"),
    )
    outer_nonce = bytes.fromhex(data["proxy_relay_nonce"])

    authorized, sent = for_auth(relay, corr_id, snd_id, encode_command(version, SEND(False, b"hello")))
    auth = authenticate(vectors.secret("srv_session", "snd_auth"), corr_id, authorized)
    [batch] = pack([encode_client(relay, sent, auth, None)])
    pfwd = forward.seal_transmission(inner_secret, corr_id, batch)
    fwd = forward.FwdTransmission(corr_id, version, vectors.key("proxy_cmd").public, pfwd)
    rfwd = forward.seal_forward(outer_secret, outer_nonce, fwd)
    [answer] = pack([encode_server(relay, corr_id, snd_id, encode_reply(version, OK()))])
    pres = forward.seal_response(inner_secret, corr_id, answer)
    response = forward.FwdResponse(corr_id, pres)
    rres = forward.seal_forward_response(outer_secret, outer_nonce, response)

    def inner_batch() -> None:
        equal(batch.hex(), data["inner_batch"])
        decoded = decode_block(relay, batch)
        equal(decoded, [ClientTransmission(auth, None, authorized, corr_id, snd_id, SEND(False, b"hello"))])
        server_secret = vectors.secret("snd_auth", "srv_session")
        equal(verify(server_secret, corr_id, auth, authorized), True)

    def inner_response() -> None:
        equal(answer.hex(), data["inner_response_batch"])
        equal(decode_replies(relay, answer), [ServerTransmission(corr_id, snd_id, OK())])

    texts = {
        "pfwd_enc_transmission": pfwd,
        "pres_enc_response": pres,
        "rfwd_enc": rfwd,
        "rfwd_plain": forward.encode_fwd_transmission(fwd),
        "rres_enc": rres,
        "rres_plain": forward.encode_fwd_response(response),
    }

    def opened() -> None:
        equal(forward.open_forward(outer_secret, outer_nonce, rfwd), fwd)
        equal(forward.open_transmission(inner_secret, corr_id, pfwd), batch)
        equal(forward.open_forward_response(outer_secret, outer_nonce, rres), response)
        equal(forward.open_response(inner_secret, corr_id, pres), answer)
        equal(forward.open_response(inner_secret, boxes.reverse_nonce(corr_id), pres), None)

    checks: dict[str, Any] = {
        "cmd_dh_secret": lambda: equal(vectors.raw_secret("srv_session", "proxy_cmd").hex(), data["cmd_dh_secret"]),
        "proxy_relay_dh_secret": lambda: equal(
            vectors.raw_secret("srv_session", "proxy_session").hex(), data["proxy_relay_dh_secret"]
        ),
        "description": opened,
        "inner_batch": inner_batch,
        "inner_response_batch": inner_response,
        "inner_t_for_auth": lambda: equal(authorized.hex(), data["inner_t_for_auth"]),
        "relay_session_id": lambda: equal(relay.session_id.hex(), data["relay_session_id"]),
        "proxy_relay_nonce": lambda: equal(len(outer_nonce), 24),
    }
    for name, text in texts.items():
        checks[f"{name}_len"] = lambda name=name, text=text: equal(len(text), data[f"{name}_len"])
        checks[f"{name}_head128"] = lambda name=name, text=text: equal(text[:128].hex(), data[f"{name}_head128"])
        checks[f"{name}_sha256"] = lambda name=name, text=text: equal(sha256(text).hexdigest(), data[f"{name}_sha256"])
    for name in data:
        yield name, checks.get(name)
