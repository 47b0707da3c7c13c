"""One TLS conversation of Weir's contexts with each other, for interpreters that have no packages.

    interpreter.py DIRECTORY        with ed25519 and ed448 certificates made by tests/transport/test_interpreters.py

Prints one line and returns 0 when everything is as it should be.
"""

import ssl
import sys
from pathlib import Path

from weir.transport.tls import client_context, peer_chain, server_context, session_id

directory = Path(sys.argv[1])


def certificate(name: str) -> tuple[tuple[bytes, ...], bytes]:
    chain = (directory / f"{name}.crt").read_text()
    ends = chain.split("-----END CERTIFICATE-----")[:-1]
    ders = tuple(ssl.PEM_cert_to_DER_cert(end.strip() + "\n-----END CERTIFICATE-----\n") for end in ends)
    return ders, (directory / f"{name}.key").read_bytes()


def connect(server: ssl.SSLContext, client: ssl.SSLContext) -> tuple[ssl.SSLObject, ssl.SSLObject]:
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    ours, theirs = server.wrap_bio(to_server, to_client, server_side=True), client.wrap_bio(to_client, to_server)
    for side in (theirs, ours, theirs, ours, theirs):
        try:
            side.do_handshake()
        except ssl.SSLWantReadError:
            continue
    return ours, theirs


conversations = 0
for kind in ("ed25519", "ed448"):
    chain, key = certificate(kind)
    server = server_context(chain, key, "smp/1")
    for tls12 in (False, True):
        for service in ((), chain):
            client = client_context("smp/1", chain=service, key_pem=key, tls12=tls12)
            ours, theirs = connect(server, client)
            assert ours.version() == theirs.version() == ("TLSv1.2" if tls12 else "TLSv1.3")
            assert "CHACHA20" in ours.cipher()[0], ours.cipher()
            assert ours.selected_alpn_protocol() == "smp/1"
            assert session_id(ours) == session_id(theirs)
            assert peer_chain(theirs) == chain, "the router's chain, which no trust store knows"
            assert peer_chain(ours) == service, "the service's chain, which no trust store knows"
            theirs.write(b"x" * 16384)
            assert ours.read(16384) == b"x" * 16384
            conversations += 1
    try:
        connect(server, client_context("h2"))
    except ssl.SSLError as error:
        assert "NO_APPLICATION_PROTOCOL" in str(error).upper().replace(" ", "_"), error
    else:
        raise AssertionError("a client that offers only other protocols is let through")
    stranger = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    stranger.check_hostname, stranger.verify_mode = False, ssl.CERT_NONE
    stranger.set_ecdh_curve("prime256v1")
    try:
        connect(server, stranger)
    except ssl.SSLError:
        pass
    else:
        raise AssertionError("a group of another curve is let through")
print(sys.version.split()[0], ssl.OPENSSL_VERSION, conversations)
