"""The facts about a command that are declared once, beside its class.

Each protocol lists its commands as dataclasses. A decorator on every class records a `Declaration`, and three places
read it: the codec takes the tag, the credential check takes the authorisation and the entity id, and a router's table
of handlers is tested to be complete.
"""

from dataclasses import dataclass
from enum import Enum, auto

from weir.wire.errors import CommandError


class Authorisation(Enum):
    """Whether a command's transmission carries an authorisation: an authenticator or a signature."""

    REQUIRED = auto()
    OPTIONAL = auto()
    FORBIDDEN = auto()


CredentialErrors = tuple[CommandError | None, CommandError | None, CommandError | None, CommandError | None]
"""The error for each combination: nothing, entity id only, authorisation only, both."""


@dataclass(frozen=True, slots=True)
class Declaration:
    """A command that every protocol declares: its name on the wire and the credentials of its transmissions."""

    tag: bytes
    first_version: int
    """The version that introduced the command. Routers parse the command at every version, as the reference does."""
    authorisation: Authorisation
    has_entity: bool
    """Whether the transmission names an entity: a queue, a token, a subscription, a service or a relay's session."""

    def credential_errors(self) -> CredentialErrors:
        return self._error(False, False), self._error(False, True), self._error(True, False), self._error(True, True)

    def _error(self, authorised: bool, entity: bool) -> CommandError | None:
        """The credentials' error; when both credentials are wrong, the one that the reference reports."""
        if self.authorisation is Authorisation.REQUIRED and not (authorised and (entity or not self.has_entity)):
            return CommandError.NO_AUTH
        if self.has_entity and not entity:
            return CommandError.NO_ENTITY
        if (entity and not self.has_entity) or (authorised and self.authorisation is Authorisation.FORBIDDEN):
            return CommandError.HAS_AUTH
        return None
