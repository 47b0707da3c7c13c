"""The kinds of values a setting can have.

A kind reads a value from TOML, from an ini file or from the text of an environment variable, and shows the value in the
form that it reads. `setting` makes a dataclass field of a kind.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True)
class Kind(Generic[T]):
    """One kind of value.

    `read` takes a TOML value or text, and raises ValueError with one clear clause if the value does not fit. `show`
    returns text that `read` accepts. `plain` returns the value as TOML has it: a number, a boolean, text or a list.
    """

    name: str
    read: Callable[[object], T]
    show: Callable[[T], str] = str
    plain: Callable[[T], Any] = str


_UNITS = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86400}
_SIZES = {"": 1, "B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
_ON_OFF = {"on": True, "true": True, "yes": True, "1": True, "off": False, "false": False, "no": False, "0": False}


def _read_bool(raw: object) -> bool:
    if isinstance(raw, bool):
        return raw
    value = _ON_OFF.get(str(raw).strip().lower())
    if value is None:
        raise ValueError("expected on or off")
    return value


def _read_int(low: int, high: int) -> Callable[[object], int]:
    def read(raw: object) -> int:
        if isinstance(raw, bool) or not re.fullmatch(r"[+-]?\d+", str(raw).strip()):
            raise ValueError("expected a whole number")
        value = int(str(raw))
        if not low <= value <= high:
            raise ValueError(f"expected a number from {low} to {high}")
        return value

    return read


def _read_float(low: float, high: float) -> Callable[[object], float]:
    def read(raw: object) -> float:
        try:
            if isinstance(raw, bool):
                raise ValueError
            value = float(str(raw))
        except ValueError:
            raise ValueError("expected a number") from None
        if not low <= value <= high:
            raise ValueError(f"expected a number from {low:g} to {high:g}")
        return value

    return read


def _read_duration(raw: object) -> float:
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(ms|s|m|h|d)?", str(raw).strip())
    if match is None or isinstance(raw, bool):
        raise ValueError('expected a time such as "300ms", "10s", "5m", "6h" or "21d"')
    return float(match[1]) * _UNITS[match[2] or "s"]


def show_duration(seconds: float) -> str:
    """Show a time in the largest unit that divides it, such as "21d", "90s" or "300ms"."""
    for unit in ("d", "h", "m", "s"):
        if seconds and seconds % _UNITS[unit] == 0:
            return f"{int(seconds / _UNITS[unit])}{unit}"
    return f"{round(seconds * 1000)}ms"


def _read_size(raw: object) -> int:
    match = re.fullmatch(r"(\d+)\s*(B|KiB|MiB|GiB)?", str(raw).strip())
    if match is None or isinstance(raw, bool):
        raise ValueError('expected a size such as 65536, "256KiB" or "64MiB"')
    return int(match[1]) * _SIZES[match[2] or ""]


def _show_size(size: int) -> str:
    for unit in ("GiB", "MiB", "KiB"):
        if size and size % _SIZES[unit] == 0:
            return f"{size // _SIZES[unit]}{unit}"
    return str(size)


def _read_text(raw: object) -> str:
    if not isinstance(raw, str):
        raise ValueError("expected text")
    return raw.strip()


def _read_password(raw: object) -> str:
    text = _read_text(raw)
    if not text or not all(" " < c <= "~" and c not in "@:/" for c in text):
        raise ValueError("expected printable ASCII without spaces, '@', ':' and '/'")
    return text


def _read_country(raw: object) -> str:
    text = _read_text(raw).upper()
    if not re.fullmatch(r"[A-Z]{2}", text):
        raise ValueError("expected a 2-letter ISO 3166 code")
    return text


def _read_path(raw: object) -> Path:
    text = _read_text(raw)
    if not text:
        raise ValueError("expected a path")
    return Path(text).expanduser()


def _read_address(raw: object) -> str:
    text = _read_text(raw)
    if not re.fullmatch(r"[^\s/@<>]+", text):
        raise ValueError("expected a host name or an IP address")
    return text


# The reference server's forms. A leading `@` alone means that the proxy takes no password.
SOCKS_FORM = re.compile(
    r"(?:socks5://)?(?:(?P<user>[^:@/]+):(?P<password>[^@]*)@|@)?"
    r"(?=[^@])(?P<host>\[[0-9A-Fa-f:.]+\]|[^\s:@/\[\]]+)?(?::(?P<port>\d{1,5}))?"
)


def _read_socks(raw: object) -> str:
    text = _read_text(raw)
    match = SOCKS_FORM.fullmatch(text)
    if match is None or not 0 < int(match["port"] or 1) < 65536:
        raise ValueError("expected [user:password@]host:port")
    return text


def _read_list(item: Callable[[object], T]) -> Callable[[object], tuple[T, ...]]:
    def read(raw: object) -> tuple[T, ...]:
        if isinstance(raw, (list, tuple)):
            parts: list[object] = list(raw)
        elif isinstance(raw, str):
            parts = [part for part in re.split(r"[,\s]+", raw.strip()) if part]
        else:
            parts = [raw]
        return tuple(item(part) for part in parts)

    return read


def _show_list(values: tuple[Any, ...]) -> str:
    return ",".join(str(value) for value in values)


def choice(*options: str) -> Kind[str]:
    def read(raw: object) -> str:
        text = str(raw).strip().lower()
        if text not in options:
            raise ValueError(f"expected one of {', '.join(options)}")
        return text

    return Kind(" | ".join(options), read)


def integer(low: int = 0, high: int = 2**31 - 1) -> Kind[int]:
    return Kind("number", _read_int(low, high), plain=int)


def number(low: float, high: float) -> Kind[float]:
    return Kind(f"{low:g}…{high:g}", _read_float(low, high), lambda value: f"{value:g}", float)


BOOL: Kind[bool] = Kind("on | off", _read_bool, lambda value: "on" if value else "off", bool)
DURATION: Kind[float] = Kind("time", _read_duration, show_duration, show_duration)
SIZE: Kind[int] = Kind("size", _read_size, _show_size, _show_size)
TEXT: Kind[str] = Kind("text", _read_text)
PASSWORD: Kind[str] = Kind("password", _read_password)
COUNTRY: Kind[str] = Kind("country code", _read_country)
SOCKS: Kind[str] = Kind("address", _read_socks)
PATH: Kind[Path] = Kind("path", _read_path)
ADDRESS: Kind[str] = Kind("host", _read_address)
PORT: Kind[int] = Kind("port", _read_int(0, 65535), plain=int)
PORTS: Kind[tuple[int, ...]] = Kind("ports", _read_list(_read_int(0, 65535)), _show_list, list)
ADDRESSES: Kind[tuple[str, ...]] = Kind("hosts", _read_list(_read_address), _show_list, list)
TEXTS: Kind[tuple[str, ...]] = Kind("list", _read_list(_read_text), _show_list, list)


def setting(kind: Kind[Any], default: Any, doc: str) -> Any:
    """Make a dataclass field with a kind, a default and one line of documentation."""
    return field(default=default, metadata={"kind": kind, "doc": doc})
