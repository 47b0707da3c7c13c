"""A certificate authority for stand-ins, and a certificate for this machine."""

import datetime
import ipaddress
import ssl
import tempfile
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from weir.crypto import p256

_NAMES = ("localhost", "127.0.0.1", "::1")


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, text)])


def _alternative(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


class Authority:
    """`pem` is the certificate that clients trust. The key is never stored."""

    def __init__(self) -> None:
        self._key = p256.generate()
        self._certificate = self._builder("Weir stand-ins", self._key.public_key(), is_ca=True)
        self.pem = self._certificate.public_bytes(Encoding.PEM)

    def server_files(self, directory: Path, names: tuple[str, ...] = ()) -> tuple[Path, Path]:
        """Write a new server's certificate and key, as PEM. Return the paths."""
        key = p256.generate()
        certificate = self._builder("stand-in", key.public_key(), names=_NAMES + names)
        files = directory / "server.crt", directory / "server.key"
        files[0].write_bytes(certificate.public_bytes(Encoding.PEM))
        files[1].write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
        return files

    def server_context(self, names: tuple[str, ...] = ()) -> ssl.SSLContext:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        with tempfile.TemporaryDirectory() as directory:
            context.load_cert_chain(*self.server_files(Path(directory), names))
        return context

    def client_context(self) -> ssl.SSLContext:
        return ssl.create_default_context(cadata=self.pem.decode())

    def _builder(
        self, name: str, key: p256.PublicKey, *, is_ca: bool = False, names: tuple[str, ...] = ()
    ) -> x509.Certificate:
        now = datetime.datetime.now(datetime.UTC)
        builder = (
            x509.CertificateBuilder()
            .subject_name(_name(name))
            .issuer_name(_name("Weir stand-ins"))
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(days=1))
            .not_valid_after(now + datetime.timedelta(days=30))
            .add_extension(x509.BasicConstraints(is_ca, None), critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), critical=False)
        )
        if names:
            alternatives = x509.SubjectAlternativeName([_alternative(one) for one in names])
            builder = builder.add_extension(alternatives, critical=False)
        return builder.sign(self._key, hashes.SHA256())
