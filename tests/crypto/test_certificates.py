from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from hypothesis import given
from hypothesis import strategies as st

from tests.vectors.fixtures import Vectors
from weir.crypto import certificates as certs
from weir.crypto.certificates import Chain, ChainError, Issued
from weir.crypto.keys import KeyType

_CA = certs.make_ca()
_ONLINE = certs.make_online(_CA, "localhost")
_SERVICE = certs.make_self_signed()
_NOW = datetime.now(UTC)


@pytest.mark.parametrize("ca_type", ["ed448", "ed25519"])
@pytest.mark.parametrize("key_type", ["ed448", "ed25519"])
def test_a_routers_chain(ca_type: KeyType, key_type: KeyType) -> None:
    ca = certs.make_ca(ca_type)
    online = certs.make_online(ca, "smp.example.org", key_type)
    chain = (online.certificate, ca.certificate)
    assert certs.validate_chain(chain) is None
    assert certs.certificate_key(online.certificate) == (key_type, online.key.public)
    assert certs.certificate_key(ca.certificate) == (ca_type, ca.key.public)
    assert certs.split_chain(chain) == Chain(online.certificate, ca.certificate, ca.certificate)


def test_a_services_chains() -> None:
    assert certs.validate_chain((_SERVICE.certificate,)) is None
    leaf = certs.make_online(_CA, "service", "ed25519", client=True)
    assert certs.validate_chain((leaf.certificate, _CA.certificate)) is None


def test_golden_chains() -> None:
    vectors = Vectors()
    at = datetime(2027, 1, 1, tzinfo=UTC)
    assert certs.validate_chain(vectors.chain("server_chain_der"), at) is None
    assert certs.validate_chain(vectors.chain("service_chain_der"), at) is None


_A, _B, _C, _D, _E = b"a", b"b", b"c", b"d", b"e"


@pytest.mark.parametrize(
    ("chain", "expected"),
    [
        ((), ChainError.EMPTY),
        ((_A,), Chain(_A, _A, _A)),
        ((_A, _B), Chain(_A, _B, _B)),
        ((_A, _B, _C), Chain(_A, _B, _C)),
        ((_A, _B, _C, _D), Chain(_A, _B, _D)),
        ((_A, _B, _C, _D, _E), ChainError.LONG),
    ],
)
def test_which_certificate_is_which(chain: tuple[bytes, ...], expected: Chain | ChainError) -> None:
    assert certs.split_chain(chain) == expected
    if isinstance(expected, ChainError):
        assert certs.validate_chain(chain) is expected


def _sub_ca(issuer: Issued) -> Issued:
    """A CA under a CA: an identity under an operator's certificate."""
    own = certs.make_ca("ed25519", "identity")
    parent = x509.load_der_x509_certificate(issuer.certificate)
    name = x509.load_der_x509_certificate(own.certificate).subject
    builder = certs._builder(name, parent.subject, own.key, 100).add_extension(
        x509.BasicConstraints(ca=True, path_length=None), critical=True
    )
    return Issued(certs._sign(builder, issuer.key), own.key)


def test_longer_chains() -> None:
    network = certs.make_ca("ed25519", "network")
    operator = _sub_ca(network)
    identity = _sub_ca(operator)
    leaf = certs.make_online(identity, "leaf", "ed25519")
    three = (certs.make_online(operator, "x", "ed25519").certificate, operator.certificate, network.certificate)
    four = (leaf.certificate, identity.certificate, operator.certificate, network.certificate)
    assert certs.validate_chain(three) is None
    assert certs.validate_chain(four) is None


def test_an_intermediate_must_be_a_ca() -> None:
    online = certs.make_online(_CA, "not a CA", "ed25519")
    leaf = certs.make_online(online, "leaf", "ed25519")
    chain = (leaf.certificate, online.certificate, _CA.certificate)
    assert certs.validate_chain(chain) is ChainError.UNTRUSTED
    bare = certs.make_self_signed("bare")
    under = certs.make_online(bare, "leaf", "ed25519")
    assert certs.validate_chain((under.certificate, bare.certificate)) is None
    assert certs.validate_chain((under.certificate, bare.certificate, bare.certificate)) is ChainError.UNTRUSTED


def test_another_cas_signature() -> None:
    other = certs.make_ca()
    assert certs.validate_chain((_ONLINE.certificate, other.certificate)) is ChainError.UNTRUSTED


def test_a_changed_certificate() -> None:
    changed = _ONLINE.certificate[:-1] + bytes((_ONLINE.certificate[-1] ^ 1,))
    assert certs.validate_chain((changed, _CA.certificate)) is ChainError.UNTRUSTED
    own = _SERVICE.certificate[:-1] + bytes((_SERVICE.certificate[-1] ^ 1,))
    assert certs.validate_chain((own,)) is ChainError.UNTRUSTED


def test_time() -> None:
    chain = (_ONLINE.certificate, _CA.certificate)
    assert certs.validate_chain(chain, _NOW - timedelta(days=2)) is ChainError.EXPIRED
    assert certs.validate_chain(chain, _NOW + timedelta(days=certs.CERTIFICATE_DAYS + 1)) is ChainError.EXPIRED
    short = certs.make_online(_CA, "short", "ed25519", days=90)
    days = certs.days_to_expiry(short.certificate)
    assert days is not None
    assert 89 < days <= 90
    assert certs.validate_chain((short.certificate, _CA.certificate), _NOW + timedelta(days=91)) is ChainError.EXPIRED


def test_days_without_end() -> None:
    assert certs.validate_chain((certs.make_self_signed(days=10**7).certificate,)) is None


def test_fingerprint() -> None:
    vectors = Vectors()
    assert certs.fingerprint(vectors.chain("server_chain_der")[1]) == vectors.cert("server_ca_fingerprint_sha256")


@given(st.lists(st.binary(max_size=60), max_size=6).map(tuple))
def test_total(chain: tuple[bytes, ...]) -> None:
    assert certs.validate_chain(chain) is not None
    for one in chain:
        assert certs.certificate_key(one) is None
        assert certs.days_to_expiry(one) is None


@pytest.mark.filterwarnings("ignore")
@given(st.data())
def test_broken_certificates(data: st.DataObject) -> None:
    der = bytearray(_SERVICE.certificate)
    for _ in range(data.draw(st.integers(1, 3))):
        der[data.draw(st.integers(0, len(der) - 1))] = data.draw(st.integers(0, 255))
    if bytes(der) != _SERVICE.certificate and certs.validate_chain((bytes(der),)) is None:
        # the signature's DER may be written in two ways: another fingerprint, but still the owner's key
        assert certs.certificate_key(bytes(der)) == ("ed25519", _SERVICE.key.public)
    certs.certificate_key(bytes(der))
    certs.days_to_expiry(bytes(der))
