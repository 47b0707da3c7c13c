"""An NTF client on one connection: what a device uses of a notification router.

    async with await NtfClient.connect("ntf://…") as client:
        reply = await client.send(TNEW(device, key.spki, dh_key.public), b"", key)      # IDTKN
        await client.send(TVFY(code), reply.token_id, key)                              # OK

At version 1 every command has a block of its own. A router that offers only version 1 has no session key: keys must
then be Ed25519 or Ed448.
"""

from typing import Any, NamedTuple

from weir.client.base import DEFAULT_TIMEOUT, Client
from weir.crypto.keys import KeyPair
from weir.transport.ntf import NtfClientConnection, connect
from weir.wire.address import SmpAddress
from weir.wire.errors import ErrorType
from weir.wire.ntf.codec import encode_command
from weir.wire.ntf.transmission import NtfServerTransmission, decode_replies, fits, pack
from weir.wire.ntf.types import PING, PONG, NtfCommand, NtfReply

NtfAnswer = NtfReply | ErrorType


class NtfRequest(NamedTuple):
    """A command, the id of its token or subscription, and the token's key, which authorises the command."""

    command: NtfCommand
    entity_id: bytes = b""
    key: KeyPair | None = None


class NtfClient(Client[NtfClientConnection, NtfCommand, NtfAnswer, NtfServerTransmission]):
    """An NTF client on one connection. `on_close` is called when the connection has ended."""

    def __init__(self, connection: NtfClientConnection, *, timeout: float = DEFAULT_TIMEOUT) -> None:
        self.session = connection.session
        super().__init__(connection, timeout=timeout)

    @classmethod
    async def connect(
        cls, address: SmpAddress | str, *, reply_timeout: float = DEFAULT_TIMEOUT, **options: Any
    ) -> "NtfClient":
        """Connect to a router. The options are those of `weir.transport.ntf.connect`."""
        return cls(await connect(address, **options), timeout=reply_timeout)

    async def __aenter__(self) -> "NtfClient":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def ping(self) -> float:
        """Send PING and return the round-trip time in seconds."""
        return await self._ping(PING(), PONG())

    # For the base

    def _encode_command(self, command: NtfCommand) -> bytes:
        return encode_command(self.session.version, command)

    def _decode_block(self, content: bytes) -> list[NtfServerTransmission]:
        return decode_replies(self.session, content)

    def _pack(self, transmissions: list[bytes]) -> list[bytes]:
        return pack(self.session, transmissions)

    def _fits(self, transmission: bytes) -> bool:
        return fits(self.session, transmission)
