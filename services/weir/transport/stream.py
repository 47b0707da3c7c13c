"""TLS on a raw asyncio transport: bytes from the socket become blocks of a fixed size, blocks become bytes.

    socket ──► whole TLS records ──► incoming BIO ──► OpenSSL ──► blocks
    socket ◄── one write per call ◄── outgoing BIO ◄── OpenSSL ◄── blocks

All TLS sessions of a thread share one pair of memory BIOs. A loop runs one callback at a time, and every callback
leaves both BIOs empty: only whole TLS records are written to the incoming BIO, so OpenSSL never stops in the middle of
a record, and OpenSSL's output is read at once. A BIO keeps the largest buffer that it ever needed, so a pair per
session would cost 40 KiB for each connected client.
"""

import asyncio
import contextlib
import ssl
import threading
from typing import cast

_RECORD_HEADER = 5
_CONTENT_TYPES = frozenset(range(20, 25))
_MAX_CONTENT = 16384  # of a record: RFC 8446, 5.1
_MAX_RECORD = _RECORD_HEADER + _MAX_CONTENT + 256  # RFC 8446, 5.2


class _Bios(threading.local):
    def __init__(self) -> None:
        self.incoming = ssl.MemoryBIO()
        self.outgoing = ssl.MemoryBIO()


_bios = _Bios()


class TlsStream(asyncio.Protocol):
    """One TLS session, server or client. Subclasses make the session and receive its blocks."""

    __slots__ = (
        "_block_size",
        "_closing",
        "_established",
        "_incoming",
        "_need",
        "_outgoing",
        "_partial",
        "_rest",
        "_tls",
        "_transport",
        "_written",
    )

    def __init__(self, block_size: int) -> None:
        self._block_size = block_size
        self._incoming = _bios.incoming
        self._outgoing = _bios.outgoing
        self._transport: asyncio.Transport | None = None
        self._tls: ssl.SSLObject | None = None
        self._established = False
        self._closing = False
        self._partial: bytearray | None = None  # the received part of a TLS record
        self._need = 0  # bytes of `_partial` from which reading can continue
        self._written = 0
        self._rest: bytes = b""  # the received part of a block

    # Subclasses implement:

    def _wrap(self, incoming: ssl.MemoryBIO, outgoing: ssl.MemoryBIO) -> ssl.SSLObject:
        raise NotImplementedError

    def _on_handshake_records(self, records: bytes | bytearray) -> None:
        self._shake_hands(records)

    def _on_established(self, tls: ssl.SSLObject) -> None:
        raise NotImplementedError

    def _on_raw_block(self, block: bytes) -> None:
        raise NotImplementedError

    def _on_raw_blocks(self, blocks: list[bytes]) -> None:
        """Receive all blocks of one read."""
        for block in blocks:
            self._on_raw_block(block)
            if self._closing:
                return

    def _on_tls_failure(self, error: ssl.SSLError) -> None:
        raise NotImplementedError

    # Subclasses call:

    def _start(self) -> None:
        """Make the TLS session. A client also sends its TLS hello."""
        self._tls = self._wrap(self._incoming, self._outgoing)
        if not self._tls.server_side:
            self._handshake()

    def _shake_hands(self, records: bytes | bytearray) -> None:
        """Continue the TLS handshake, and read what arrived after it."""
        if self._tls is None:
            self._start()
        self._incoming.write(records)
        if self._handshake():
            self._read()

    def _send_blocks(self, blocks: list[bytes]) -> None:
        """Send each block as one TLS record. uvloop joins the writes of one turn of the loop into one socket write."""
        if self._closing or self._transport is None:
            return
        tls = cast(ssl.SSLObject, self._tls)
        for block in blocks:
            tls.write(block)
        data = self._outgoing.read()
        self._written += len(data)
        self._transport.write(data)

    def close(self) -> None:
        """Send TLS's close_notify, and close when everything written has been sent."""
        if self._closing:
            return
        self._closing = True
        if self._transport is None:
            return
        if self._established:
            self._close_notify()
        self._transport.close()

    def abort(self) -> None:
        """Close now and discard what is not sent yet."""
        self._closing = True
        if self._transport is not None:
            self._transport.abort()

    @property
    def closing(self) -> bool:
        return self._closing

    @property
    def buffered(self) -> int:
        """Bytes written but not yet taken by the kernel."""
        return 0 if self._transport is None else self._transport.get_write_buffer_size()

    @property
    def taken(self) -> int:
        """Bytes of blocks that the kernel has taken."""
        return self._written - self.buffered

    def pause_reading(self) -> None:
        if self._transport is not None and not self._closing:
            self._transport.pause_reading()

    def resume_reading(self) -> None:
        if self._transport is not None and not self._closing:
            self._transport.resume_reading()

    # asyncio.Protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        if self._closing:
            return
        records: bytes | bytearray = data
        if self._partial is not None:
            self._partial += data
            if len(self._partial) < self._need:
                return
            records, self._partial = self._partial, None
        size = len(records)
        end = 0
        while size - end >= _RECORD_HEADER:
            length = _RECORD_HEADER + (records[end + 3] << 8 | records[end + 4])
            if length > _MAX_RECORD or records[end] not in _CONTENT_TYPES:
                end = size  # not TLS; OpenSSL names the error
                break
            if end + length > size:
                self._need = length
                break
            end += length
        else:
            self._need = _RECORD_HEADER
        if end < size:
            self._partial = bytearray(records[end:])
            if end == 0:
                return
            records = records[:end]
        if self._established:
            self._incoming.write(records)
            self._read()
        else:
            self._on_handshake_records(records)

    def eof_received(self) -> None:
        return None

    def connection_lost(self, exc: Exception | None) -> None:
        self._closing = True
        self._transport = None
        self._tls = None
        self._partial = None

    # TLS

    def _handshake(self) -> bool:
        tls = cast(ssl.SSLObject, self._tls)
        try:
            tls.do_handshake()
        except ssl.SSLWantReadError:
            self._flush()
            return False
        except ssl.SSLError as error:
            self._fail(error)
            return False
        self._flush()
        self._established = True
        # The subclass may write and so use the BIOs. Records that follow the handshake wait outside meanwhile.
        behind = self._incoming.read()
        self._on_established(tls)
        if not behind or self._closing:
            return False
        self._incoming.write(behind)
        return True

    def _read(self) -> None:
        read = cast(ssl.SSLObject, self._tls).read
        size = self._block_size
        blocks: list[bytes] = []
        ended = False
        try:
            while self._incoming.pending:
                chunk = read(_MAX_CONTENT)  # the whole record: OpenSSL must keep nothing back
                if not chunk:
                    ended = True
                    break
                if self._rest or len(chunk) != size:
                    self._rest = self._cut(self._rest + chunk, blocks)
                else:
                    blocks.append(chunk)
        except ssl.SSLWantReadError:
            pass  # the last record was one of TLS itself
        except ssl.SSLError as error:
            self._fail(error)
            return
        if self._outgoing.pending:
            self._flush()
        if ended:
            self._incoming.read()
        if blocks:
            self._on_raw_blocks(blocks)
        if ended:
            self.close()

    def _cut(self, data: bytes, blocks: list[bytes]) -> bytes:
        """Append the whole blocks of `data`, and return the rest."""
        size = self._block_size
        whole = len(data) // size * size
        blocks.extend(data[at : at + size] for at in range(0, whole, size))
        return data[whole:]

    def _flush(self) -> None:
        data = self._outgoing.read()
        if data and self._transport is not None:
            self._transport.write(data)

    def _fail(self, error: ssl.SSLError) -> None:
        """Send the alert that OpenSSL wrote, and close."""
        self._incoming.read()
        self._flush()
        self._closing = True
        if self._transport is not None:
            self._transport.close()
        self._on_tls_failure(error)

    def _close_notify(self) -> None:
        # `unwrap` always asks for the peer's answer. Nobody waits for it.
        with contextlib.suppress(ssl.SSLError):
            cast(ssl.SSLObject, self._tls).unwrap()
        self._flush()
