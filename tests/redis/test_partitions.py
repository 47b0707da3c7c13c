"""The hash tags of a deployment, with and without a prefix."""

from binascii import crc_hqx

import pytest

from weir.redis.partitions import REGISTRY, Partitions, is_prefix


def test_without_a_prefix_the_tags_are_those_of_deployments_that_exist() -> None:
    partitions = Partitions()
    assert partitions.tags == (*(b"{%d}" % p for p in range(64)), b"{weir}")
    assert partitions.name == b"weir"


def test_a_prefix_makes_tags_of_its_own() -> None:
    partitions = Partitions("ntf")
    assert partitions.tags[7] == b"{ntf.7}"
    assert partitions.registry == partitions.tags[REGISTRY] == b"{ntf}"
    assert partitions.slots[7] == crc_hqx(b"ntf.7", 0) % 16384
    assert not set(partitions.tags) & set(Partitions().tags)


@pytest.mark.parametrize("text", ["", "ntf", "smp-2", "a" * 31])
def test_prefixes(text: str) -> None:
    assert is_prefix(text)


@pytest.mark.parametrize("text", ["weir", "7", "Ntf", "a.b", "a}", "-a", "a" * 32, "ntf\n"])
def test_texts_that_could_collide_with_another_deployment_are_no_prefixes(text: str) -> None:
    assert not is_prefix(text)
    with pytest.raises(ValueError):
        Partitions(text)
