"""Make the seed corpus from the golden bytes: `python -m tests.fuzz.seeds`.

Small files, named by their content, one directory per harness. They are committed: this runs when the vectors change.
"""

from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

from tests.fuzz.harnesses import NTF_VERSIONS, SMP_VERSIONS
from tests.vectors.fixtures import Vectors
from weir.wire.ntf.device_token import encode_device_token, parse_device_token
from weir.wire.ntf.session import NtfSession
from weir.wire.ntf.transmission import encode_client, encode_server, for_auth, pack
from weir.wire.smp.forward import FwdResponse, FwdTransmission, encode_fwd_response, encode_fwd_transmission
from weir.wire.smp.parts import cert_chain_key

CORPUS = Path(__file__).with_name("corpus")
LARGEST = 2048
_SMP_SEED_VERSIONS = (8, 19)


def _messages(vectors: Vectors, part: str, versions: tuple[int, ...], first: range | None) -> Iterator[bytes]:
    for entry in vectors.data[part]:
        if entry["version"] in versions:
            data = bytes.fromhex(entry["hex"])
            yield data if first is None else bytes((first.index(entry["version"]),)) + data


def _blocks(vectors: Vectors) -> Iterator[bytes]:
    for part, field in (("client_transmissions", "batch_unpadded"), ("decode", "batch_hex")):
        for entry in vectors.data[part]:
            if entry["version"] in (6, 19):
                yield bytes((SMP_VERSIONS.index(entry["version"]),)) + bytes.fromhex(entry[field])


def _replies(vectors: Vectors) -> Iterator[bytes]:
    for entry in vectors.data["server_transmissions"]:
        data = bytes.fromhex(entry["hex"])
        yield bytes((SMP_VERSIONS.index(entry["version"]),)) + b"\x01" + len(data).to_bytes(2, "big") + data


def _handshakes(vectors: Vectors, *names: str) -> Iterator[bytes]:
    for entry in vectors.data["handshakes"]:
        if entry["name"].split(" ")[0] in names:
            yield bytes.fromhex(entry["hex"])


def _ntf_blocks(vectors: Vectors) -> Iterator[bytes]:
    corr_id, entity_id = vectors.const("corr_id"), vectors.const("service_id")
    for part in ("ntf_commands", "ntf_responses"):
        for entry in vectors.data[part]:
            session = NtfSession(bytes(range(32)), entry["version"])
            data = bytes.fromhex(entry["hex"])
            if part == "ntf_commands":
                one = encode_client(session, for_auth(session, corr_id, entity_id, data)[1], bytes(80), None)
            else:
                one = encode_server(session, corr_id, entity_id, data)
            if len(one) < 490:
                [content] = pack(session, [one])
                yield bytes((NTF_VERSIONS.index(entry["version"]),)) + content


def _addresses(vectors: Vectors) -> Iterator[bytes]:
    text = vectors.data["nmsg"]["pn_message_data_str"].split("/UF")[0]
    yield text.encode()
    yield text.replace("@", ":secret@").encode()
    key = text.partition("@")[0]
    for rest in ("localhost", "127.0.0.1:5223", "[::1]:443", "a.org,b.onion"):
        yield f"{key}@{rest}".encode()


_SUBSCRIPTION = (
    "webpush https://localhost:8443/secret AQ3VfRX3_F38J3ltcmMVRg "
    "BKuw4WxupnnrZHqk6vCwoms4tOpitZMvFdR9eAn54yOPY4q9jpXOpl-Ui_FwbIy8ZbFCnuaS7RnO02ahuL4XxIM"
)


def _device_tokens() -> Iterator[bytes]:
    for text in (_SUBSCRIPTION, "apns_prod 00ff", "apns_null test_ntf_token"):
        token = parse_device_token(text)
        assert token is not None
        yield text.encode()
        yield encode_device_token(token)


def seeds(vectors: Vectors) -> dict[str, Iterator[bytes]]:
    corr_id, key = vectors.const("corr_id"), vectors.key("proxy_cmd").public
    errors = (one[5:] for one in _messages(vectors, "smp_responses", (19,), SMP_VERSIONS) if one[1:5] == b"ERR ")
    return {
        "smp_block": _blocks(vectors),
        "smp_replies": _replies(vectors),
        "smp_command": _messages(vectors, "smp_commands", _SMP_SEED_VERSIONS, SMP_VERSIONS),
        "smp_reply": _messages(vectors, "smp_responses", _SMP_SEED_VERSIONS, SMP_VERSIONS),
        "smp_error": errors,
        "server_hello": _handshakes(vectors, "SMPServerHandshake"),
        "client_hello": _handshakes(vectors, "SMPClientHandshake"),
        "service_response": _handshakes(vectors, "SMPServerHandshakeResponse", "SMPServerHandshakeError"),
        "ntf_command": _messages(vectors, "ntf_commands", (3,), None),
        "ntf_reply": _messages(vectors, "ntf_responses", (3,), None),
        "ntf_hello": _handshakes(vectors, "NtfServerHandshake", "NtfClientHandshake"),
        "ntf_block": _ntf_blocks(vectors),
        "address": _addresses(vectors),
        "push_message": iter([vectors.data["nmsg"]["pn_message_data_str"].encode()]),
        "device_token": _device_tokens(),
        "forwarded": iter(
            [
                encode_fwd_transmission(FwdTransmission(corr_id, 17, key, b"\xee" * 30)),
                encode_fwd_response(FwdResponse(corr_id, b"\xee" * 30)),
            ]
        ),
        "certificate_chain": iter([cert_chain_key(vectors.server_cert_key), cert_chain_key(vectors.service_cert_key)]),
    }


def main() -> None:
    for name, values in seeds(Vectors()).items():
        directory = CORPUS / name
        directory.mkdir(parents=True, exist_ok=True)
        for value in values:
            if len(value) <= LARGEST:
                (directory / sha256(value).hexdigest()[:16]).write_bytes(value)


if __name__ == "__main__":
    main()
