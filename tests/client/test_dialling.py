"""The hosts of a router that are dialled, and how."""

import pytest

from weir.client.dialling import Dialler
from weir.config import kinds
from weir.router.config import Proxy
from weir.transport.socks import SocksProxy, parse_socks
from weir.wire.address import ServerHost

ONION = "a" * 56 + ".onion"


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, ["a.example", "b.example"]),
        ({"socks_proxy": "127.0.0.1:9050"}, ["a.example", "b.example", ONION]),
        ({"socks_proxy": "127.0.0.1:9050", "host_mode": "onion"}, [ONION, "a.example", "b.example"]),
        ({"socks_proxy": "127.0.0.1:9050", "host_mode": "onion", "required_host_mode": True}, [ONION]),
        ({"required_host_mode": True}, ["a.example", "b.example"]),
        ({"host_mode": "onion", "required_host_mode": True}, []),
    ],
)
def test_hosts(settings: dict[str, object], expected: list[str]) -> None:
    dialler = Dialler(Proxy(**settings), allow_local=False, timeout=1.0)  # type: ignore[arg-type]
    hosts = (b"a.example", ONION.encode(), b"b.example")
    assert dialler.hosts(ServerHost(hosts, b"", bytes(32))) == expected


@pytest.mark.parametrize(
    ("setting", "proxy"),
    [
        ("127.0.0.1:9150", SocksProxy("127.0.0.1", 9150)),
        ("tor.example", SocksProxy("tor.example", 9050)),
        (":9150", SocksProxy("127.0.0.1", 9150)),
        ("@127.0.0.1:9150", SocksProxy("127.0.0.1", 9150)),
        ("[::1]:9150", SocksProxy("::1", 9150)),
        ("me:secret@localhost:9150", SocksProxy("localhost", 9150, (b"me", b"secret"))),
        ("socks5://me:secret@[::1]", SocksProxy("::1", 9050, (b"me", b"secret"))),
    ],
)
def test_where_the_socks_proxy_is(setting: str, proxy: SocksProxy) -> None:
    assert kinds.SOCKS.read(setting) == setting
    assert parse_socks(setting) == proxy


@pytest.mark.parametrize("setting", ["", "@", "me@host:9050", "host:port", "host:70000", "::1", "two words"])
def test_what_is_no_socks_proxy(setting: str) -> None:
    with pytest.raises(ValueError, match=r"expected \[user:password@\]host:port"):
        kinds.SOCKS.read(setting)


def test_own_routers() -> None:
    dialler = Dialler(Proxy(own_server_domains=("example.org",)), allow_local=False, timeout=1.0)

    def own(host: bytes) -> bool:
        return dialler.is_own(ServerHost((host,), b"", bytes(32)))

    assert [own(host) for host in (b"example.org", b"smp1.example.org", b"badexample.org", b"example.com")] == [
        True,
        True,
        False,
        False,
    ]
