import pytest

from weir.wire.declaration import Authorisation, CredentialErrors, Declaration
from weir.wire.errors import CommandError

NO_AUTH, HAS_AUTH, NO_ENTITY = CommandError.NO_AUTH, CommandError.HAS_AUTH, CommandError.NO_ENTITY


@pytest.mark.parametrize(
    ("authorisation", "has_entity", "expected"),
    [
        (Authorisation.REQUIRED, True, (NO_AUTH, NO_AUTH, NO_AUTH, None)),
        (Authorisation.REQUIRED, False, (NO_AUTH, NO_AUTH, None, HAS_AUTH)),
        (Authorisation.OPTIONAL, True, (NO_ENTITY, None, NO_ENTITY, None)),
        (Authorisation.OPTIONAL, False, (None, HAS_AUTH, None, HAS_AUTH)),
        (Authorisation.FORBIDDEN, True, (NO_ENTITY, None, NO_ENTITY, HAS_AUTH)),
        (Authorisation.FORBIDDEN, False, (None, HAS_AUTH, HAS_AUTH, HAS_AUTH)),
    ],
)
def test_credential_errors(authorisation: Authorisation, has_entity: bool, expected: CredentialErrors) -> None:
    assert Declaration(b"TAG", 1, authorisation, has_entity).credential_errors() == expected
