"""Moving a slot, against a cluster node that is played by the test."""

from typing import Any

from tests.support.reshard import Reshard


class _Source:
    """A node with some keys, the first of which has expired: MIGRATE removes it and answers NOKEY."""

    def __init__(self, *keys: bytes) -> None:
        self.keys = list(keys)
        self.set_slot: list[str] = []

    def execute_command(self, *words: Any) -> Any:
        if words[:2] == ("CLUSTER", "GETKEYSINSLOT"):
            return self.keys[: words[3]]
        if words[0] == "MIGRATE":
            moved = words[words.index("KEYS") + 1 :]
            self.keys = [key for key in self.keys if key not in moved]
            return b"NOKEY" if moved == (b"expired",) else b"OK"
        assert words[:2] == ("CLUSTER", "SETSLOT")
        self.set_slot.append(words[3])
        assert words[3] != "NODE" or not self.keys, "the slot is given away while it has keys"
        return b"OK"


def test_an_expired_key_does_not_end_the_move() -> None:
    source = _Source(b"expired", b"first", b"second")
    move = Reshard.__new__(Reshard)
    move.slot, move.source, move.target = 7, 0, 1
    move._clients, move._ids, move._ports = [source, _Source()], ["a", "b"], [1, 2]
    move.whole(step=1)
    assert source.keys == []
    assert source.set_slot == ["MIGRATING", "NODE"]
