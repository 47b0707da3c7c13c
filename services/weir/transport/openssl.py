"""The few OpenSSL settings that the standard `ssl` module has no call for.

They are made on the SSL_CTX that an `ssl.SSLContext` holds, in the very OpenSSL the interpreter runs with.
Everything else (sessions, records, memory BIOs) goes through the public `ssl` API.
"""

import _ssl
import ctypes
import functools
import ssl
import sys
from typing import Any

_SET_MODE = 33
_SET_SESSION_CACHE_MODE = 44
_SET_MAX_CERT_LIST = 51
_SET_GROUPS_LIST = 92
_SET_SIGALGS_LIST = 98
_SESSION_CACHE_OFF = 0
_MODE_RELEASE_BUFFERS = 0x10
_ALPN_OK = 0
_ALPN_ALERT_FATAL = 2

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


class OpenSSLUnavailable(RuntimeError):
    """This interpreter hides the OpenSSL that its ssl module is built on."""


@functools.cache
def _library() -> Any:
    # A handle on the extension module also resolves the libssl it was linked with, so there is never a second OpenSSL.
    library = ctypes.CDLL(getattr(_ssl, "__file__", None))
    signatures: dict[str, tuple[list[Any], Any]] = {
        "SSL_CTX_get_options": ([ctypes.c_void_p], ctypes.c_uint64),
        "SSL_CTX_ctrl": ([ctypes.c_void_p, ctypes.c_int, ctypes.c_long, ctypes.c_char_p], ctypes.c_long),
        "SSL_CTX_set_ciphersuites": ([ctypes.c_void_p, ctypes.c_char_p], ctypes.c_int),
        "SSL_CTX_set_cert_verify_callback": ([ctypes.c_void_p, _VerifyCallback, ctypes.c_void_p], None),
        "SSL_CTX_set_alpn_select_cb": ([ctypes.c_void_p, _AlpnCallback, ctypes.c_void_p], None),
    }
    for name, (argtypes, restype) in signatures.items():
        function = getattr(library, name, None)
        if function is None:
            raise OpenSSLUnavailable(
                f"{sys.executable} hides its OpenSSL ({name}); use a CPython that links OpenSSL as a shared library"
            )
        function.argtypes, function.restype = argtypes, restype
    return library


def _ctx(context: ssl.SSLContext) -> int:
    """The SSL_CTX pointer: the first field after the object header, in every CPython since 3.6."""
    if sys.implementation.name != "cpython":
        raise OpenSSLUnavailable("only CPython's ssl module is supported")
    pointer = ctypes.c_void_p.from_address(id(context) + object.__basicsize__).value
    if not pointer or _library().SSL_CTX_get_options(pointer) != int(context.options) & (2**64 - 1):
        raise OpenSSLUnavailable("the layout of ssl.SSLContext is not the known one")
    return pointer


_accept = _VerifyCallback(lambda _store, _arg: 1)


def accept_any_chain(context: ssl.SSLContext) -> None:
    """Let TLS accept every certificate chain: identities are checked in the SMP handshake, against no trust store."""
    _library().SSL_CTX_set_cert_verify_callback(_ctx(context), _accept, None)


def restrict(context: ssl.SSLContext, *, suites13: str, groups: str, signatures: str, max_chain_bytes: int) -> None:
    library, ctx = _library(), _ctx(context)
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


@functools.cache
def _alpn_selector(protocol: str) -> Any:
    # Cached for ever: OpenSSL keeps the pointer for as long as any context lives.
    name = ctypes.create_string_buffer(protocol.encode(), len(protocol))
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

    return _AlpnCallback(select)


def require_alpn(context: ssl.SSLContext, protocol: str) -> None:
    """A client that offers protocols but not this one gets alert 120; one that offers none is let through."""
    _library().SSL_CTX_set_alpn_select_cb(_ctx(context), _alpn_selector(protocol), None)
