import pytest

from weir.wire.smp.session import Session


@pytest.mark.parametrize(
    ("version", "implied", "service"),
    [(6, False, False), (7, True, False), (15, True, False), (16, True, True), (19, True, True)],
)
def test_smp(version: int, implied: bool, service: bool) -> None:
    session = Session(b"id", version)
    assert (session.imply_session_id, session.service_auth) == (implied, service)
    assert session.auth_prefix == b"\x02id"
    assert session.server_prefix == (b"\0" if implied else b"\0\x02id")


@pytest.mark.parametrize(("version", "service"), [(6, False), (8, False), (17, True)])
def test_forwarded(version: int, service: bool) -> None:
    session = Session.forwarded(b"id", version)
    assert (session.version, session.imply_session_id, session.service_auth) == (version, True, service)


def test_nothing_of_it_is_shown() -> None:
    assert "auth_prefix" not in repr(Session(b"id", 19))
