import pytest
from hypothesis import given
from hypothesis import strategies as st

from weir.wire.address import ServerHost, SmpAddress, format_server, parse_host

_PRINT = bytes(range(0xE0, 0x100))
_TEXT = "4OHi4-Tl5ufo6err7O3u7_Dx8vP09fb3-Pn6-_z9_v8="


@pytest.mark.parametrize(
    ("text", "address"),
    [
        (f"smp://{_TEXT}@smp.example.org", SmpAddress(_PRINT, ("smp.example.org",))),
        (f"smp://{_TEXT}@localhost:5223", SmpAddress(_PRINT, ("localhost",), 5223)),
        (f"smp://{_TEXT}:secret@127.0.0.1:443", SmpAddress(_PRINT, ("127.0.0.1",), 443, b"secret")),
        (f"smp://{_TEXT}@a.org,b.onion:1", SmpAddress(_PRINT, ("a.org", "b.onion"), 1)),
        (f"smp://{_TEXT}@[::1]:5223", SmpAddress(_PRINT, ("::1",), 5223)),
        (f"ntf://{_TEXT}@ntf.example.org", SmpAddress(_PRINT, ("ntf.example.org",), scheme="ntf")),
        (f"ntf://{_TEXT}@a.org?vapid=B_-", SmpAddress(_PRINT, ("a.org",), scheme="ntf", query="vapid=B_-")),
        (f"ntf://{_TEXT}@[::1],a.org:1?x=?", SmpAddress(_PRINT, ("::1", "a.org"), 1, scheme="ntf", query="x=?")),
    ],
)
def test_both_ways(text: str, address: SmpAddress) -> None:
    assert SmpAddress.parse(text) == address
    assert str(address) == text


def test_padding_may_be_left_out() -> None:
    assert SmpAddress.parse(f"smp://{_TEXT[:-1]}@h") == SmpAddress(_PRINT, ("h",))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "smp://",
        f"xftp://{_TEXT}@host",
        f"smp://{_TEXT}",
        f"smp://{_TEXT}@",
        f"smp://{_TEXT}@host:",
        f"smp://{_TEXT}@host:0",
        f"smp://{_TEXT}@host:65536",
        f"smp://{_TEXT}@host:12x",
        f"smp://{_TEXT}@a,,b",
        f"smp://{_TEXT}@a b",
        f"smp://{_TEXT}:a b@host",
        f"smp://{_TEXT}:a:b@host",
        "smp://AAAA@host",
        "smp://!@host",
        f"smp://{_TEXT}@h\u0444",
        f"smp://{_TEXT}@h:1?vapid=B",
        f"ntf://{_TEXT}@?vapid=B",
    ],
)
def test_not_an_address(text: str) -> None:
    assert SmpAddress.parse(text) is None


@pytest.mark.parametrize(
    ("text", "host"),
    [
        (b"smp.example.org", b"smp.example.org"),
        (b"127.0.0.1", b"127.0.0.1"),
        (b"010.0.0.1", b"10.0.0.1"),
        (b"::1", b"::1"),
        (b"[2001:DB8::1]", b"2001:db8::1"),
        (b"abc234.onion", b"abc234.onion"),
        (b"face", b"face"),
        (b"300.0.0.1", b"300.0.0.1"),
        (b"1.2.3.4.example.org", None),
        (b"abc.onion.org", None),
        (b"ABC.onion", None),
        (b"a,b", None),
        (b"a:1", None),
        (b"a b", None),
        (b"", None),
        (b"[zz]", None),
    ],
)
def test_hosts(text: bytes, host: bytes | None) -> None:
    assert parse_host(text) == host


def test_as_server_host() -> None:
    address = SmpAddress.parse(f"smp://{_TEXT}@a.org,::1:5223") or SmpAddress.parse(f"smp://{_TEXT}@a.org,[::1]:5223")
    assert address is not None
    bracketed = SmpAddress(_PRINT, ("a.org", "::1"), 5223)
    assert bracketed.server_host == ServerHost((b"a.org", b"::1"), b"5223", _PRINT)
    assert format_server(bracketed.server_host).decode() == str(bracketed)
    assert SmpAddress(_PRINT, ("h",)).server_host.port == b""


def test_default_ports() -> None:
    assert SmpAddress(_PRINT, ("h",)).effective_port == 5223
    assert SmpAddress(_PRINT, ("h",), scheme="ntf").effective_port == 443
    assert SmpAddress(_PRINT, ("h",), 1).effective_port == 1


@given(st.one_of(st.text(max_size=80), st.text(max_size=40).map(lambda rest: f"smp://{_TEXT}@{rest}")))
def test_total(text: str) -> None:
    address = SmpAddress.parse(text)
    if address is not None:
        assert SmpAddress.parse(str(address)) == address


@given(st.binary(max_size=40))
def test_hosts_total(text: bytes) -> None:
    host = parse_host(text)
    if host is not None:
        assert parse_host(host) == host


def test_a_mapped_ipv4_address_has_one_form_on_every_python() -> None:
    for text in (b"::ffff:0:0", b"0:0:0:0:0:FFFF:0000:0"):
        assert parse_host(text) == b"::ffff:0:0"
    assert parse_host(b"::ffff:c000:201") == b"::ffff:c000:201"
