"""TLS contexts with the OpenSSL settings that the standard `ssl` module has no call for.

`ssl` does not give access to the SSL_CTX behind an `ssl.SSLContext`. OpenSSL does: who registers application data for
a class of objects (CRYPTO_get_ex_new_index) is called with a pointer to each object of that class when it is created.
So `new_context` makes an ordinary context, takes the pointer from that call, and makes its settings with OpenSSL's
public functions, in the OpenSSL that the interpreter itself runs with. No memory of a Python object is read. The
pointer does not leave `new_context`. Everything else (sessions, records, memory BIOs) goes through the `ssl` API.

Alternatives, and why they are not enough (November 2026):
- Python 3.15 has calls for groups, signature algorithms and TLS 1.3 suites. It has none to accept a client's chain that
  no trust store knows, which services present (asked for since 2017: CPython issues 75425 and 90935).
- pyOpenSSL 26.4 has callbacks for the chain and for ALPN, but no call to restrict groups, signature algorithms or the
  size of a chain, so that a router would speak more than the protocol allows. It also brings a second OpenSSL.
"""

import _ssl
import ctypes
import functools
import ssl
import sys
import threading
from typing import Any, Final

_SET_MODE: Final = 33
_SET_SESSION_CACHE_MODE: Final = 44
_SET_MAX_CERT_LIST: Final = 51
_SET_GROUPS_LIST: Final = 92
_SET_SIGALGS_LIST: Final = 98
_SESSION_CACHE_OFF: Final = 0
_MODE_RELEASE_BUFFERS: Final = 0x10
_ALPN_OK: Final = 0
_ALPN_ALERT_FATAL: Final = 2
_EX_INDEX_SSL_CTX: Final = 1  # the class of objects

_VerifyCallback = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
_AlpnCallback = ctypes.CFUNCTYPE(
    ctypes.c_int,
    ctypes.c_void_p,
    ctypes.POINTER(ctypes.c_void_p),
    ctypes.POINTER(ctypes.c_ubyte),
    ctypes.c_void_p,
    ctypes.c_uint,
    ctypes.c_void_p,
)
_NewCallback = ctypes.CFUNCTYPE(
    None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int, ctypes.c_long, ctypes.c_void_p
)


class OpenSSLUnavailable(RuntimeError):
    """The interpreter's OpenSSL cannot be used. The text is one line for people."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"{sys.executable} cannot run Weir: {reason}; use a CPython that links OpenSSL 3 dynamically")


def new_context(
    protocol: int, *, suites13: str, groups: str, signatures: str, max_chain_bytes: int, alpn: str | None = None
) -> ssl.SSLContext:
    """A context that speaks no more than this, resumes no session, and accepts every certificate chain.

    Identities are checked in the SMP handshake, against no trust store. With `alpn`, a server refuses a client that
    offers protocols but not this one with alert 120, and lets through a client that offers none.
    """
    library = _library()
    context, ctx = _create(library, protocol)
    done = (
        library.SSL_CTX_set_ciphersuites(ctx, suites13.encode())
        and library.SSL_CTX_ctrl(ctx, _SET_GROUPS_LIST, 0, groups.encode())
        and library.SSL_CTX_ctrl(ctx, _SET_SIGALGS_LIST, 0, signatures.encode())
    )
    if not done:
        raise OpenSSLUnavailable(f"{ssl.OPENSSL_VERSION} does not know {suites13}, {groups} or {signatures}")
    library.SSL_CTX_ctrl(ctx, _SET_MAX_CERT_LIST, max_chain_bytes, None)
    library.SSL_CTX_ctrl(ctx, _SET_SESSION_CACHE_MODE, _SESSION_CACHE_OFF, None)
    library.SSL_CTX_ctrl(ctx, _SET_MODE, _MODE_RELEASE_BUFFERS, None)
    library.SSL_CTX_set_cert_verify_callback(ctx, _accept, None)
    if alpn is not None:
        library.SSL_CTX_set_alpn_select_cb(ctx, _alpn_selector(alpn), None)
    return context


@functools.cache
def _library() -> Any:
    if sys.implementation.name != "cpython":
        raise OpenSSLUnavailable(f"it is {sys.implementation.name}, not CPython")
    # A handle on the extension module also resolves the libssl that it was linked with, so there is no second OpenSSL.
    library = ctypes.CDLL(getattr(_ssl, "__file__", None))
    signatures: dict[str, tuple[list[Any], Any]] = {
        "CRYPTO_get_ex_new_index": (
            [ctypes.c_int, ctypes.c_long, ctypes.c_void_p, _NewCallback, ctypes.c_void_p, ctypes.c_void_p],
            ctypes.c_int,
        ),
        "SSL_CTX_get_options": ([ctypes.c_void_p], ctypes.c_uint64),
        "SSL_CTX_ctrl": ([ctypes.c_void_p, ctypes.c_int, ctypes.c_long, ctypes.c_char_p], ctypes.c_long),
        "SSL_CTX_set_ciphersuites": ([ctypes.c_void_p, ctypes.c_char_p], ctypes.c_int),
        "SSL_CTX_set_cert_verify_callback": ([ctypes.c_void_p, _VerifyCallback, ctypes.c_void_p], None),
        "SSL_CTX_set_alpn_select_cb": ([ctypes.c_void_p, _AlpnCallback, ctypes.c_void_p], None),
    }
    for name, (argtypes, restype) in signatures.items():
        function = getattr(library, name, None)
        if function is None:
            raise OpenSSLUnavailable(f"its ssl module hides OpenSSL ({name})")
        function.argtypes, function.restype = argtypes, restype
    if library.CRYPTO_get_ex_new_index(_EX_INDEX_SSL_CTX, 0, None, _note_created, None, None) < 0:
        raise OpenSSLUnavailable("its OpenSSL registers no application data")
    return library


class _Created(threading.local):
    """The SSL_CTXs that this thread creates, while `_create` listens."""

    pointers: list[int] | None = None


_created = _Created()


def _note_new(parent: int, *_: object) -> None:
    if _created.pointers is not None:
        _created.pointers.append(parent)


def _create(library: Any, protocol: int) -> tuple[ssl.SSLContext, int]:
    """A context and its SSL_CTX, which lives as long as the context."""
    pointers: list[int] = []
    _created.pointers = pointers
    try:
        context = ssl.SSLContext(protocol)
    finally:
        _created.pointers = None
    if len(pointers) != 1:
        raise OpenSSLUnavailable(f"its OpenSSL reports {len(pointers)} new SSL_CTXs for one context")
    if library.SSL_CTX_get_options(pointers[0]) != int(context.options) & (2**64 - 1):
        raise OpenSSLUnavailable("the SSL_CTX that its OpenSSL reports is not that of the context")
    return context, pointers[0]


def _kept_for_ever(callback: Any) -> Any:
    """OpenSSL keeps the pointers of callbacks, and may use them while the interpreter takes its modules apart."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(callback))
    return callback


_note_created = _kept_for_ever(_NewCallback(_note_new))
_accept = _kept_for_ever(_VerifyCallback(lambda _store, _arg: 1))


@functools.cache
def _alpn_selector(protocol: str) -> Any:
    name = _kept_for_ever(ctypes.create_string_buffer(protocol.encode(), len(protocol)))
    offer = bytes([len(protocol)]) + protocol.encode()

    def select(_ssl_: Any, out: Any, out_length: Any, offered: Any, length: int, _arg: Any) -> int:
        offers = ctypes.string_at(offered, length)
        position = 0
        while position < length:
            end = position + 1 + offers[position]
            if offers[position:end] == offer:
                out[0] = ctypes.addressof(name)
                out_length[0] = len(protocol)
                return _ALPN_OK
            position = end
        return _ALPN_ALERT_FATAL

    return _kept_for_ever(_AlpnCallback(select))
