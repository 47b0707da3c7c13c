"""Which addresses clients may make a router dial."""

import pytest

from weir.transport.destinations import is_public, resolve


@pytest.mark.parametrize(
    "address",
    [
        "8.8.8.8",
        "2001:4860:4860::8888",
        "64:ff9b::808:808",  # 8.8.8.8 through NAT64
        "2002:808:808::1",  # 8.8.8.8 through 6to4
        "::ffff:8.8.8.8",
    ],
)
def test_addresses_in_the_public_internet(address: str) -> None:
    assert is_public(address)


@pytest.mark.parametrize(
    "address",
    [
        "10.0.0.1",
        "127.0.0.1",
        "169.254.169.254",
        "100.64.0.1",
        "0.0.0.0",
        "224.0.1.1",
        "::",
        "::1",
        "fe80::1%2",
        "fc00::1",
        "fec0::1",
        "ff0e::1",
        "3fff::1",
        "64:ff9b::a00:1",  # 10.0.0.1 through NAT64
        "64:ff9b::7f00:1",
        "64:ff9b::a9fe:a9fe",  # 169.254.169.254, where clouds serve credentials
        "64:ff9b::e000:101",
        "64:ff9b:1::a00:1",  # the local-use prefix, with the IPv4 address in three of its places
        "64:ff9b:1:a00:0:100:808:808",
        "64:ff9b:1:ff0a:0:1:808:808",
        "64:ff9b:1::808:808",  # another place of this address may hold a private one
        "2002:a00:1::1",  # 10.0.0.1 through 6to4
        "2002:7f00:1::1",
        "::ffff:10.0.0.1",
        "::ffff:127.0.0.1",
        "::10.0.0.1",  # IPv4-compatible, long obsolete
    ],
)
def test_addresses_that_lead_elsewhere(address: str) -> None:
    assert not is_public(address)


async def test_names_are_resolved_to_what_may_be_dialled() -> None:
    assert await resolve("127.0.0.1", 443, allow_local=True) == ("127.0.0.1",)
    assert await resolve("127.0.0.1", 443, allow_local=False) == ()
    assert await resolve("localhost", 443, allow_local=False) == ()
    assert "127.0.0.1" in await resolve("localhost", 443, allow_local=True)
    assert await resolve("8.8.8.8", 443, allow_local=False) == ("8.8.8.8",)


@pytest.mark.parametrize("host", ["2130706433", "0177.0.0.1", "127.1"])
async def test_unusual_forms_of_loopback_are_loopback(host: str) -> None:
    assert await resolve(host, 443, allow_local=False) == ()


async def test_a_name_that_is_none() -> None:
    with pytest.raises(ValueError):
        await resolve("a" * 64 + ".example", 443, allow_local=False)
    with pytest.raises(OSError):
        await resolve("nonexistent.invalid", 443, allow_local=False)
