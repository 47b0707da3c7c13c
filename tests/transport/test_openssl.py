"""The settings made behind the ssl module's back, and interpreters in which they cannot be made."""

from __future__ import annotations

import ssl
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import pytest

from weir.transport import openssl, tls
from weir.transport.openssl import OpenSSLUnavailable

REPO = Path(__file__).resolve().parents[2]


def context(protocol: int = ssl.PROTOCOL_TLS_SERVER, **changed: object) -> ssl.SSLContext:
    settings: dict[str, object] = {
        "suites13": "TLS_CHACHA20_POLY1305_SHA256",
        "groups": "X25519:X448",
        "signatures": "ed25519:ed448",
        "max_chain_bytes": 16384,
    }
    return openssl.new_context(protocol, **{**settings, **changed})  # type: ignore[arg-type]


def test_the_settings_reach_the_context_that_is_returned() -> None:
    names = {cipher["name"] for cipher in context().get_ciphers() if cipher["protocol"] == "TLSv1.3"}
    assert names == {"TLS_CHACHA20_POLY1305_SHA256"}
    assert len(ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).get_ciphers()) > len(context().get_ciphers())


@pytest.mark.parametrize(
    ("setting", "value"), [("suites13", "TLS_NO_SUCH"), ("groups", "X25519:no-such"), ("signatures", "no-such")]
)
def test_settings_that_openssl_does_not_know(setting: str, value: str) -> None:
    with pytest.raises(OpenSSLUnavailable, match=value):
        context(**{setting: value})


def test_contexts_of_others_do_no_harm() -> None:
    """Other threads create contexts while this one does, as HTTP clients do."""
    stop = threading.Event()

    def create() -> None:
        while not stop.is_set():
            ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)

    others = [threading.Thread(target=create) for _ in range(3)]
    for thread in others:
        thread.start()
    try:
        for _ in range(200):
            context()
    finally:
        stop.set()
        for thread in others:
            thread.join()


# ---- interpreters in which it cannot work: one clear line, no crash


def fails(program: str) -> str:
    """The error line of `weir ping`, after `program` has changed the interpreter."""
    source = (
        textwrap.dedent(program)
        + "\nimport sys\nfrom weir.cli.main import main\nsys.exit(main(['ping', sys.argv[1], '--timeout', '5']))\n"
    )
    address = "smp://" + "A" * 43 + "=@127.0.0.1:1"
    done = subprocess.run([sys.executable, "-c", source, address], capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stderr
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"weir ping: {sys.executable} cannot run Weir: ")
    assert line.endswith("; use a CPython that links OpenSSL 3 dynamically")
    return line


def test_another_implementation_of_python() -> None:
    assert "pypy, not CPython" in fails("import sys; sys.implementation.name = 'pypy'")


@pytest.mark.parametrize("name", ["CRYPTO_get_ex_new_index", "SSL_CTX_ctrl", "SSL_CTX_set_alpn_select_cb"])
def test_a_build_that_hides_its_openssl(name: str) -> None:
    """As interpreters do that OpenSSL is linked into."""
    program = f"""
        import ctypes
        class Hiding(ctypes.CDLL):
            def __getattr__(self, name):
                if name == {name!r}:
                    raise AttributeError(name)
                return super().__getattr__(name)
        ctypes.CDLL = Hiding
    """
    assert f"its ssl module hides OpenSSL ({name})" in fails(program)


def test_a_second_openssl_beside_that_of_the_ssl_module() -> None:
    """Here a library that knows nothing of the context: the callback never comes."""
    program = """
        import ssl
        class Other:
            def __init__(self, protocol):
                self.options = 0
        ssl.SSLContext = Other
    """
    assert "its OpenSSL reports 0 new SSL_CTXs for one context" in fails(program)


def test_an_ssl_module_that_makes_more_than_one() -> None:
    program = """
        import ssl
        real = ssl.SSLContext
        class Double(real):
            def __new__(cls, protocol):
                real(protocol)
                return super().__new__(cls, protocol)
        ssl.SSLContext = Double
    """
    assert "its OpenSSL reports 2 new SSL_CTXs for one context" in fails(program)


def test_a_context_whose_options_are_others() -> None:
    program = """
        import ssl
        real = ssl.SSLContext
        class Other:
            def __init__(self, protocol):
                real(protocol)
                self.options = 1
        ssl.SSLContext = Other
    """
    assert "is not that of the context" in fails(program)


def test_contexts_made_while_the_interpreter_ends() -> None:
    """OpenSSL still calls back then."""
    program = """
        import atexit, ssl
        from weir.transport.tls import client_context
        class Late:
            def __del__(self, SSLContext=ssl.SSLContext, protocol=ssl.PROTOCOL_TLS_CLIENT):
                SSLContext(protocol)
        kept = client_context(None), Late()
        kept[1].itself = kept
        atexit.register(ssl.SSLContext, ssl.PROTOCOL_TLS_CLIENT)
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_no_session_is_kept() -> None:
    server = tls.client_context(None)
    assert server.session_stats()["number"] == 0
