import pytest

from weir.wire.ntf.session import NtfSession


@pytest.mark.parametrize(("version", "batch"), [(1, False), (2, True), (3, True)])
def test_ntf(version: int, batch: bool) -> None:
    session = NtfSession(b"id", version)
    assert (session.imply_session_id, session.batch, session.service_auth) == (batch, batch, False)
