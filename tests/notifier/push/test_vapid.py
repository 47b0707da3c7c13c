"""VAPID: tokens that all edges share, and key files that are followed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from py_vapid import Vapid02  # type: ignore[import-untyped]

from weir.crypto import p256
from weir.crypto.pem import UnusableFile
from weir.notifier.push import vapid
from weir.notifier.push.vapid import Vapid, VapidFile

KEY = p256.generate()


def test_vapid_tokens_are_the_same_on_all_edges_for_an_hour() -> None:
    now = 1_700_000_000.0 // 3600 * 3600
    one, other = Vapid(KEY, "mailto:a@b", now=lambda: now), Vapid(KEY, "mailto:a@b", now=lambda: now + 3599)
    first = one.authorization("https://push.example")
    assert first == other.authorization("https://push.example") == one.authorization("https://push.example")
    assert first != one.authorization("https://other.example")
    assert first != Vapid(KEY, "mailto:a@b", now=lambda: now + 3600).authorization("https://push.example")
    text = first.decode().removeprefix("vapid t=").partition(",k=")
    assert text[2] == p256.public_text(KEY)
    read = p256.read_web_token(KEY.public_key(), text[0].encode())
    assert read is not None
    assert read[1] == {"aud": "https://push.example", "exp": int(now) + 7200, "sub": "mailto:a@b"}


def test_another_implementation_verifies_vapid() -> None:
    value = Vapid(KEY, "mailto:a@b").authorization("https://push.example").decode()
    assert Vapid02.verify(value)


def write(path: Path, *keys: p256.PrivateKey) -> None:
    """As the kubelet replaces a file: by a new one under the same name."""
    new = path.with_suffix(".new")
    new.write_bytes(p256.keys_to_pem(*keys))
    new.replace(path)


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(vapid, "_LOOK_SECONDS", 0.0)
    path = tmp_path / "vapid.key"
    write(path, KEY)
    return path


def public(keys: tuple[Vapid, ...]) -> list[str]:
    return [key.public for key in keys]


def test_a_changed_file_is_followed_and_keys_that_stay_keep_their_tokens(file: Path) -> None:
    keys = VapidFile(file, None)
    (first,) = keys.current()
    assert keys.current() == (first,)
    new = p256.generate()
    write(file, new, KEY)
    assert public(keys.current()) == [p256.public_text(new), p256.public_text(KEY)]
    assert keys.current()[1] is first


def test_a_file_that_cannot_be_used_changes_nothing(file: Path, caplog: pytest.LogCaptureFixture) -> None:
    keys = VapidFile(file, None)
    before = keys.current()
    file.write_text("no key")
    assert keys.current() == keys.current() == before
    file.unlink()
    assert keys.current() == before
    assert len(caplog.records) == 2
    write(file, p256.generate())
    assert keys.current() != before


def test_the_file_is_looked_at_seldom(tmp_path: Path) -> None:
    path = tmp_path / "vapid.key"
    write(path, KEY)
    keys = VapidFile(path, None)
    write(path, p256.generate())
    assert public(keys.current()) == [p256.public_text(KEY)]


def test_a_router_does_not_start_without_its_key(tmp_path: Path) -> None:
    with pytest.raises(OSError):
        VapidFile(tmp_path / "missing", None)
    (tmp_path / "empty").write_bytes(os.urandom(9))
    with pytest.raises(UnusableFile, match="empty"):
        VapidFile(tmp_path / "empty", None)
