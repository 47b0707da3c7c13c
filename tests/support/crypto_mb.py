"""The builds of crypto_mb that scripts/servers.sh fetched, and switching between them and libsodium."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from weir.crypto import multibuffer

_CACHE = Path.home() / ".cache" / "weir" / "servers"
# The processor's features that the library asks for, with Linux's names.
_NEEDED = {"bmi2", "avx512f", "avx512dq", "avx512bw", "avx512ifma", "avx512_vbmi2"}


def builds() -> dict[str, Path]:
    """Path by Debian release."""
    found = sorted(_CACHE.glob("crypto_mb-*/tree/usr/lib/*/libcrypto_mb.so.[0-9][0-9]"))
    return {path.relative_to(_CACHE).parts[0].removeprefix("crypto_mb-"): path for path in found}


def processor_can() -> bool:
    cpuinfo = Path("/proc/cpuinfo")
    return cpuinfo.exists() and set(cpuinfo.read_text().split()) >= _NEEDED


@contextmanager
def using(build: Path | str) -> Iterator[None]:
    """Public-key operations by this build of the library; by libsodium with `off`."""
    before = os.environ.get(multibuffer.VARIABLE)
    os.environ[multibuffer.VARIABLE] = str(build)
    multibuffer._library.cache_clear()
    try:
        yield
    finally:
        multibuffer._library.cache_clear()
        if before is None:
            del os.environ[multibuffer.VARIABLE]
        else:
            os.environ[multibuffer.VARIABLE] = before
