"""The providers of a configuration."""

import re
import ssl
from pathlib import Path

import pytest

from weir.bench.standins.authority import Authority
from weir.crypto import p256
from weir.crypto.pem import UnusableFile
from weir.notifier.config import Apns, NotifierConfig, Push, WebPush
from weir.notifier.push.providers import _context, providers
from weir.wire.ntf.types import PushProvider

AD, AP, AT, AN, WP = (
    PushProvider.APNS_DEV,
    PushProvider.APNS_PROD,
    PushProvider.APNS_TEST,
    PushProvider.APNS_NULL,
    PushProvider.WEB_PUSH,
)


@pytest.fixture
def apns(tmp_path: Path) -> Apns:
    p256.save_key(tmp_path / "AuthKey.p8", p256.generate())
    return Apns(key=tmp_path / "AuthKey.p8", key_id="K", team_id="T", topic="dev.weir.app")


def test_without_keys_there_is_the_null_provider_alone() -> None:
    assert set(providers(NotifierConfig())) == {AN}


def test_the_test_provider_has_to_be_allowed() -> None:
    assert set(providers(NotifierConfig(push=Push(allow_test=True)))) == {AN, AT}


@pytest.mark.parametrize(("environment", "expected"), [("both", {AD, AP}), ("production", {AP}), ("sandbox", {AD})])
def test_apns(apns: Apns, environment: str, expected: set[PushProvider]) -> None:
    config = NotifierConfig(apns=Apns(apns.key, "K", "T", "dev.weir.app", environment=environment))
    assert set(providers(config)) == expected | {AN}


def test_web_push(tmp_path: Path) -> None:
    p256.save_key(tmp_path / "vapid.key", p256.generate())
    assert set(providers(NotifierConfig(web_push=WebPush(vapid_key=tmp_path / "vapid.key")))) == {AN, WP}


def test_files_without_keys_and_certificates(tmp_path: Path, apns: Apns) -> None:
    (tmp_path / "bad.pem").write_text("nonsense")
    bad = tmp_path / "bad.pem"
    for config in (
        NotifierConfig(apns=Apns(bad, "K", "T", "t")),
        NotifierConfig(apns=Apns(apns.key, "K", "T", "t", ca=bad)),
        NotifierConfig(web_push=WebPush(vapid_key=bad)),
    ):
        with pytest.raises(UnusableFile, match=re.escape("bad.pem: no")):
            providers(config)
    with pytest.raises(OSError):
        providers(NotifierConfig(web_push=WebPush(vapid_key=tmp_path / "missing.key")))


def test_a_ca_of_ones_own_comes_beside_the_systems(tmp_path: Path) -> None:
    """For Web Push. With APNs, the CA is that of the one host that is given."""
    authority = Authority()
    path = tmp_path / "ca.crt"
    path.write_bytes(authority.pem)
    known = len(ssl.create_default_context().get_ca_certs())
    assert len(_context(path, and_the_systems=True).get_ca_certs()) == known + 1
    assert len(_context(path).get_ca_certs()) == 1
