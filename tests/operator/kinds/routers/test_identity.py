"""The rules about identities and online certificates, as a table; and the certificates themselves."""

from __future__ import annotations

import base64
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from weir.crypto import certificates
from weir.crypto.keys import KeyType
from weir.crypto.pem import certificates_from_pem, key_from_pem
from weir_operator.kinds import names
from weir_operator.kinds.routers import identity
from weir_operator.kinds.routers.identity import (
    Copy,
    Generate,
    IdentitySecret,
    Issue,
    Keep,
    Online,
    Wanted,
    decide,
)
from weir_operator.kinds.secrets import Data, fingerprint_text
from weir_operator.kinds.smpservice import key_pair
from weir_operator.kube.conditions import Problem

NOW = datetime(2026, 6, 1, tzinfo=UTC)
WANTED = Wanted(None, None, None, renew_before_days=30, renew=None, renewed=None)
MINE = IdentitySecret(b"ca", "FP", has_ca_key=True, online=None)
FRESH = Online("FP", "leaf", NOW + timedelta(days=60), valid=True)

TABLE = [
    ("nothing yet: make one", WANTED, None, None, Generate),
    ("an identity and no certificate: issue", WANTED, MINE, None, Issue),
    ("all is well", WANTED, MINE, FRESH, Keep),
    ("all is well, and known", replace(WANTED, known="FP"), MINE, FRESH, Keep),
    ("inside the window", WANTED, MINE, replace(FRESH, not_after=NOW + timedelta(days=30)), Issue),
    ("just outside the window", WANTED, MINE, replace(FRESH, not_after=NOW + timedelta(days=31)), Keep),
    ("ended", WANTED, MINE, replace(FRESH, not_after=NOW - timedelta(days=1)), Issue),
    ("broken", WANTED, MINE, replace(FRESH, valid=False), Issue),
    ("asked for", replace(WANTED, renew="1"), MINE, FRESH, Issue),
    ("asked for and done", replace(WANTED, renew="1", renewed="1"), MINE, FRESH, Keep),
    ("asked for again", replace(WANTED, renew="2", renewed="1"), MINE, FRESH, Issue),
    ("lost, by status", replace(WANTED, known="FP"), None, None, "IdentityLost"),
    ("lost, by the edges' certificate", WANTED, None, FRESH, "IdentityLost"),
    ("lost, another one named", replace(WANTED, known="FP", replaceable="XX"), None, None, "IdentityLost"),
    ("lost and given up", replace(WANTED, known="FP", replaceable="FP"), None, FRESH, Generate),
    ("swapped", replace(WANTED, known="OLD"), MINE, None, "IdentityChanged"),
    ("swapped, by the edges' certificate", WANTED, MINE, replace(FRESH, fingerprint="OLD"), "IdentityChanged"),
    ("swapped on purpose", replace(WANTED, known="OLD", replaceable="OLD"), MINE, None, Issue),
    ("given and missing", replace(WANTED, given="s"), None, None, "IdentityMissing"),
    ("given and gone, known before", replace(WANTED, given="s", known="FP"), None, FRESH, "IdentityMissing"),
    ("unreadable", WANTED, Problem("IdentityInvalid", "x"), FRESH, "IdentityInvalid"),
]


@pytest.mark.parametrize(("wanted", "found", "online", "expected"), [r[1:] for r in TABLE], ids=[r[0] for r in TABLE])
def test_decide(
    wanted: Wanted, found: IdentitySecret | Problem | None, online: Online | None, expected: type | str
) -> None:
    decision = decide(wanted, found, online, NOW)
    if isinstance(expected, str):
        assert isinstance(decision, Problem)
        assert decision.reason == expected
    else:
        assert isinstance(decision, expected)


@pytest.fixture(scope="module")
def made() -> Data:
    return identity.make_identity("ed25519", "SMP")


def issued(made: Data, days: int = 90) -> dict[str, str]:
    online = identity.issue_online(made, "h.example", "ed25519", days)
    assert not isinstance(online, Problem)
    return online


def test_what_is_issued_fits_and_has_no_ca_key(made: Data) -> None:
    online = issued(made, 10)
    assert names.CA_KEY not in online
    found = identity.read_online(online)
    assert found is not None
    assert found.valid
    assert 9 <= (found.not_after - datetime.now(UTC)).days <= 10
    (ca,) = certificates_from_pem(base64.b64decode(made[names.CA_CERT]))
    assert found.fingerprint == fingerprint_text(ca)
    assert base64.urlsafe_b64decode(found.fingerprint) == certificates.fingerprint(ca)


def test_each_issue_has_a_key_of_its_own(made: Data) -> None:
    one, other = issued(made), issued(made)
    assert one[names.SERVER_KEY] != other[names.SERVER_KEY]


def test_what_does_not_fit_is_seen(made: Data) -> None:
    one, other = issued(made), issued(made)
    mixed = identity.read_online({**one, names.SERVER_KEY: other[names.SERVER_KEY]})
    assert mixed is not None
    assert not mixed.valid
    stranger = identity.make_identity("ed25519", "SMP")
    foreign = identity.read_online({**one, names.CA_CERT: stranger[names.CA_CERT]})
    assert foreign is not None
    assert not foreign.valid
    for broken in ({**one, names.SERVER_CERT: "AAAA"}, {names.CA_CERT: one[names.CA_CERT]}, {}, None):
        assert identity.read_online(broken) is None


@pytest.mark.parametrize(
    ("authority", "leaf", "ed448"),
    [
        ("ed25519", "ed25519", (False, False)),
        ("ed448", "ed25519", (False, True)),
        ("ed448", "ed448", (True, True)),
    ],
)
def test_ed448_is_seen_in_both_certificates(authority: KeyType, leaf: KeyType, ed448: tuple[bool, bool]) -> None:
    online = identity.issue_online(identity.make_identity(authority, "SMP"), "h.example", leaf, 90)
    assert not isinstance(online, Problem)
    found = identity.read_online(online)
    assert found is not None
    assert (found.valid, found.ed448) == (True, ed448)


def test_read_identity_says_what_is_missing(made: Data) -> None:
    public = {names.CA_CERT: made[names.CA_CERT]}
    assert isinstance(identity.read_identity(public, True, "s"), IdentitySecret)
    for data, has_key, words in (
        ({}, True, "has no ca.crt"),
        (public, False, "neither ca.key nor server.crt"),
        ({names.CA_CERT: base64.b64encode(b"x").decode()}, True, "ca.crt of Secret s"),
        ({names.CA_CERT: "%%%"}, True, "has no ca.crt"),
    ):
        found = identity.read_identity(data, has_key, "s")
        assert isinstance(found, Problem)
        assert words in found.message


def test_an_online_certificate_that_came_without_the_cas_key_is_copied_once(made: Data) -> None:
    online = issued(made)
    given = identity.read_identity(online, False, "s")
    assert isinstance(given, IdentitySecret)
    wanted = replace(WANTED, given="s")
    now = datetime.now(UTC)
    assert isinstance(decide(wanted, given, None, now), Copy)
    assert isinstance(decide(wanted, given, identity.read_online(online), now), Keep)
    assert isinstance(decide(wanted, given, identity.read_online(issued(made)), now), Copy)


def test_issue_says_what_is_wrong_with_the_identity(made: Data) -> None:
    other = identity.make_identity("ed448", "SMP")
    for data in (
        {},
        {names.CA_CERT: made[names.CA_CERT]},
        {**made, names.CA_KEY: other[names.CA_KEY]},
        {**made, names.CA_KEY: "AAAA"},
    ):
        found = identity.issue_online(data, "h", "ed25519", 1)
        assert isinstance(found, Problem)
        assert found.reason == "IdentityInvalid"


def test_a_services_pair_and_its_fingerprint() -> None:
    data = key_pair.make("ed25519", "app", 100)
    (certificate,) = certificates_from_pem(base64.b64decode(data[names.TLS_CERT]))
    assert key_pair.fingerprint(data) == fingerprint_text(certificate)
    pair = key_from_pem(base64.b64decode(data[names.TLS_KEY]))
    assert certificates.certificate_key(certificate) == (pair.type, pair.public)
    assert key_pair.fingerprint({}) is None
