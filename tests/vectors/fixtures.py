"""The file's constants, keys and certificates, by the names that its entries use."""

import json
from functools import cached_property
from pathlib import Path
from typing import Any

from weir.crypto.keys import KeyPair, KeyType, dh, dh_raw, key_pair, parse_private
from weir.crypto.session_key import sign_session_key
from weir.wire.address import ServerHost
from weir.wire.smp import ids_hash
from weir.wire.smp.commands import LinkData
from weir.wire.smp.replies import CertChainKey

VECTORS = Path(__file__).with_name("vectors.json")


class NoCheck(Exception):
    """There is no check for an entry: it counts as failed."""


class Vectors:
    def __init__(self, path: Path = VECTORS) -> None:
        self.data: dict[str, Any] = json.loads(path.read_text())
        if not isinstance(self.data, dict):
            raise ValueError("not an object with parts")
        self.parts = [part for part in self.data if not part.startswith("_")]
        if path != VECTORS and not {"consts", "keys", "certs"} <= self.data.keys():
            own = json.loads(VECTORS.read_text())
            for part in ("consts", "keys", "certs"):
                if part not in self.data:
                    self.data[part] = own[part]

    def const(self, name: str) -> bytes:
        return bytes.fromhex(self.data["consts"][name])

    @cached_property
    def keys(self) -> dict[str, KeyPair]:
        kinds: dict[str, KeyType] = {"X25519": "x25519", "Ed25519": "ed25519", "Ed448": "ed448"}
        return {
            key["name"]: KeyPair(
                kinds[key["type"]], bytes.fromhex(key["public_raw"]), bytes.fromhex(key["private_raw"])
            )
            for key in self.data["keys"]
        }

    def key(self, name: str) -> KeyPair:
        if name not in self.keys:
            raise NoCheck(f"no key {name}")
        return self.keys[name]

    def secret(self, public: str, private: str) -> bytes:
        return dh(self.key(public).public, self.key(private).private)

    def raw_secret(self, public: str, private: str) -> bytes:
        return dh_raw(self.key(public).public, self.key(private).private)

    def cert(self, name: str) -> bytes:
        return bytes.fromhex(self.data["certs"][name])

    def chain(self, name: str) -> tuple[bytes, ...]:
        return tuple(bytes.fromhex(der) for der in self.data["certs"][name])

    @cached_property
    def server_leaf(self) -> KeyPair:
        found = parse_private(self.cert("server_leaf_private_pkcs8_der"))
        assert found is not None
        return key_pair(*found)

    @cached_property
    def service_leaf(self) -> KeyPair:
        found = parse_private(self.cert("service_cert_private_pkcs8_der"))
        assert found is not None
        return key_pair(*found)

    @property
    def server_cert_key(self) -> CertChainKey:
        return CertChainKey(
            self.chain("server_chain_der"), sign_session_key(self.server_leaf, self.key("srv_session").spki)
        )

    @property
    def service_cert_key(self) -> CertChainKey:
        return CertChainKey(
            self.chain("service_chain_der"), sign_session_key(self.service_leaf, self.key("service_session").spki)
        )

    @property
    def link_data(self) -> LinkData:
        return LinkData(self.const("link_enc_fixed_data"), self.const("link_enc_user_data"))

    @property
    def two_ids_hash(self) -> bytes:
        return ids_hash.of_ids([self.const("rcv_id"), self.const("snd_id")])

    two_hosts = ServerHost(
        (b"smp.example.org", b"abcdefghijklmnopqrstuvwxyz234567abcdefghijklmnopqrstuvwx.onion"),
        b"5223",
        bytes(range(0xE0, 0x100)),
    )
    one_host = ServerHost((b"127.0.0.1",), b"", bytes(range(0xE0, 0x100)))
