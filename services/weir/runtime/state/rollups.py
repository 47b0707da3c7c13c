"""The stream of rollups, in the slot of the registry.

Each entry has one field, `r`: the bytes of a record. Entries older than `keep` are trimmed when others are added, and
the whole stream expires `keep` after its last entry, so that rollups that are turned off leave nothing behind. Trimming
is approximate: Redis drops whole pages of about a hundred entries.
"""

import asyncio
import time
from collections.abc import Sequence
from typing import Final

from weir.redis.connection import ReplyError
from weir.redis.errors import Unavailable
from weir.runtime.state.calls import Calls
from weir.runtime.state.keys import CommonKeys

FIELD: Final = b"r"


class RollupStream:
    def __init__(self, calls: Calls, keys: CommonKeys) -> None:
        self._calls = calls
        self._key = keys.rollups

    @property
    def connected(self) -> bool:
        return self._calls.connected

    async def append(self, records: Sequence[bytes], keep: float) -> list[bytes]:
        """Append records. Return those that Redis has not confirmed: it may have them or not.

        A record that is appended twice does no harm, because (edge, sequence) tells.
        """
        oldest = b"%d" % ((time.time() - keep) * 1000)
        asked = [
            self._calls.ask_registry(b"XADD", self._key, b"MINID", b"~", oldest, b"*", FIELD, record)
            for record in records
        ]
        asked.append(self._calls.ask_registry(b"EXPIRE", self._key, int(keep)))
        answers = await asyncio.gather(*asked, return_exceptions=True)
        for answer in answers:
            if isinstance(answer, BaseException) and not isinstance(answer, (Unavailable, ReplyError)):
                raise answer
        return [r for r, answer in zip(records, answers, strict=False) if isinstance(answer, BaseException)]
