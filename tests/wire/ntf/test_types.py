from typing import get_args

from weir.wire.ntf.types import DECLARATIONS, NtfCommand


def test_every_command_is_declared() -> None:
    assert set(DECLARATIONS) == set(get_args(NtfCommand))
