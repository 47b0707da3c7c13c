"""`weir service`: lists services and their state, labels them, rotates their certificates, and forgets services."""

from __future__ import annotations

import argparse
import asyncio
import base64
import binascii
import json
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from weir.cli.arguments import load_smp_config, parser
from weir.cli.errors import Fail
from weir.config.kinds import DURATION, show_duration

if TYPE_CHECKING:
    from weir.router.config import RouterConfig
    from weir.router.store.records import ServiceInfo
    from weir.router.store.store import Store

_LONGEST_OVERLAP = 3650 * 86400.0
_DRIFT = ("ok", "more", "fewer", "diff")


def main(argv: Sequence[str]) -> int:
    p = parser(
        "weir service",
        "A service is a client with a certificate. It subscribes to all its queues with one command, SUBS. The router\n"
        "then sends all waiting messages; this is called the fold.\n\n"
        "actions:\n"
        "  list      list all services\n"
        "  show      show one service: its certificates, its connection, the progress of its fold\n"
        "  label     give a service a name of your own, for these lists and for rollups; '' removes it\n"
        "  drift     count how often SUBS found the expected queues (ok), more, fewer, or others (diff)\n"
        "  rotate    give a service a new certificate under the same service id, at once or with an overlap\n"
        "  forget    remove a service. Its queues stay and belong to no service. Its certificate may register again\n\n"
        "SERVICE is the id of a service or the fingerprint of its certificate, in base64url; the beginning is enough.\n"
        "For a value that begins with `-`, write `--` before SERVICE, after all options, and `--from=FP`, `--to=FP`.",
        """
weir service list --home data
weir service show 3q2-7w --config /etc/weir/weir.toml --json
weir service label 3q2-7w directory --home data
weir service rotate --from OLD_FINGERPRINT --to NEW_FINGERPRINT --overlap 7d --home data
weir service forget 3q2-7w --yes --home data
""",
    )
    p.add_argument("action", choices=("list", "show", "label", "drift", "rotate", "forget"))
    p.add_argument("service", nargs="?", metavar="SERVICE", help="for show, label, drift and forget")
    p.add_argument("label", nargs="?", metavar="NAME", help="for label: up to 64 characters")
    p.add_argument("--config", type=Path, metavar="FILE", help="configuration file of the router")
    p.add_argument("--home", type=Path, metavar="DIR", help="home of a running `weir up`, instead of --config")
    p.add_argument("--from", dest="old", metavar="FP", help="rotate: fingerprint of the present certificate")
    p.add_argument("--to", dest="new", metavar="FP", help="rotate: fingerprint of the new certificate")
    p.add_argument(
        "--overlap",
        default="0s",
        metavar="TIME",
        help="rotate: time in which both certificates work, at most ten years (0s)",
    )
    p.add_argument("--yes", action="store_true", help="forget: do not ask for confirmation")
    p.add_argument("--json", action="store_true", help="print JSON")
    options = p.parse_intermixed_args(argv)
    if options.action in ("show", "label", "forget") and not options.service:
        p.error(f"{options.action} needs a SERVICE")
    if (options.action == "label") != (options.label is not None):
        p.error("label needs a NAME" if options.action == "label" else f"{options.action} takes no NAME")
    if options.action == "rotate" and not (options.old and options.new):
        p.error("rotate needs --from and --to")
    return asyncio.run(_run(options))


async def _run(options: argparse.Namespace) -> int:
    from weir.redis.connection import ReplyError
    from weir.redis.errors import StoreError, Unavailable
    from weir.router.store.store import Store

    try:
        store = await Store.open(_store_config(_config(options)), edge=False)
    except StoreError as error:
        raise Fail(str(error)) from None
    try:
        return await _ACTIONS[options.action](store, options)
    except StoreError as error:
        raise Fail(str(error)) from None
    except ReplyError as error:
        raise Fail(f"Redis refuses the command: {error}") from None
    except Unavailable:
        raise Fail("Redis does not answer") from None
    finally:
        await store.close()


def _config(options: argparse.Namespace) -> RouterConfig:
    if options.home is None:
        return load_smp_config(options.config)
    from dataclasses import replace

    from weir.bench.target import BenchError, read_run_file

    try:
        run = read_run_file(options.home)
    except BenchError as error:
        raise Fail(str(error)) from None
    config = load_smp_config(Path(run["config"]))
    redis = replace(config.redis, url=run["redis"]["url"], placement_key=Path(run["placement_key"]))
    return replace(config, redis=redis)


def _store_config(config: RouterConfig) -> Any:
    from weir.config.schema import ConfigError
    from weir.redis.settings import read_key
    from weir.router.store.core import StoreConfig

    redis = config.redis
    try:
        key = read_key(redis.placement_key, "a placement key")
    except ConfigError as error:
        raise Fail(str(error)) from None
    return StoreConfig(
        url=redis.url,
        prefix=redis.prefix,
        password=redis.password,
        password_file=redis.password_file,
        placement_key=key,
        deadline=redis.command_timeout,
        connect_timeout=redis.connect_timeout,
        lease=redis.lease,
    )


async def _list(store: Store, options: argparse.Namespace) -> int:
    services = await store.registry.list_services()
    if options.json:
        return _print_json([_as_json(info) for info in services])
    rows = [("SERVICE", "ROLE", "QUEUES", "WITH MESSAGES", "CONNECTED", "FOLD", "LABEL")]
    for info in services:
        totals = info.totals
        connected = f"since {_time(totals.since)}" if totals.owner else "no"
        counts = str(totals.count), str(totals.ready)
        rows.append((_text(info.service_id), _role(info), *counts, connected, _fold(info), info.label))
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
    return 0


async def _show(store: Store, options: argparse.Namespace) -> int:
    info = await _find(store, options.service)
    if options.json:
        return _print_json(_as_json(info))
    totals = info.totals
    print(f"service       {_text(info.service_id)}")
    if info.label:
        print(f"label         {info.label}")
    print(f"role          {_role(info)}")
    print(f"created       {_time(info.created)}")
    for fingerprint, until in info.fingerprints.items():
        print(f"certificate   {_text(fingerprint)}{f', until {_time(until)}' if until else ''}")
    print(f"queues        {totals.count}, idsHash {totals.ids_hash.hex()}")
    print(f"with messages {totals.ready}")
    print(f"connected     {f'to edge {totals.owner}, since {_time(totals.since)}' if totals.owner else 'no'}")
    print(f"fold          {_fold(info)}")
    print(f"drift         {_drift(info)}")
    return 0


async def _label(store: Store, options: argparse.Namespace) -> int:
    from weir.telemetry.rollups.record import LONGEST_LABEL, is_label

    label = options.label
    if label and not is_label(label):
        raise Fail(f"a label is printable text of at most {LONGEST_LABEL} characters, and not “other”")
    info = await _find(store, options.service)
    await store.registry.set_label(info.service_id, label)
    if options.json:
        return _print_json({"service": _text(info.service_id), "label": label})
    print(f"{_text(info.service_id)}: {f'labelled {label}' if label else 'has no label now'}")
    return 0


async def _show_drift(store: Store, options: argparse.Namespace) -> int:
    services = await store.registry.list_services()
    if options.service:
        services = [await _find(store, options.service)]
    if options.json:
        drifts = [{"service": _text(i.service_id)} | {kind: i.drift.get(kind, 0) for kind in _DRIFT} for i in services]
        return _print_json(drifts)
    for info in services:
        print(f"{_text(info.service_id)}  {_drift(info)}")
    return 0


async def _rotate(store: Store, options: argparse.Namespace) -> int:
    try:
        overlap = DURATION.read(options.overlap)
    except ValueError as error:
        raise Fail(f"--overlap: {error}") from None
    if overlap > _LONGEST_OVERLAP:
        raise Fail(f"--overlap: expected at most {show_duration(_LONGEST_OVERLAP)}")
    service_id = await store.registry.rotate(_fingerprint(options.old), _fingerprint(options.new), int(overlap))
    if options.json:
        return _print_json({"service": _text(service_id), "overlap_seconds": int(overlap)})
    old = f"works for another {show_duration(overlap)}" if overlap else "is refused from now on"
    print(f"{_text(service_id)}: the new certificate is accepted, the old one {old}")
    return 0


async def _forget(store: Store, options: argparse.Namespace) -> int:
    info = await _find(store, options.service)
    name = _text(info.service_id)
    if not options.yes and input(f"Forget {name} with {info.totals.count} queues? Type yes: ") != "yes":
        raise Fail("the service was not forgotten")
    queues = await store.registry.forget(info.service_id) or 0
    if options.json:
        return _print_json({"service": name, "queues": queues})
    print(f"{name}: forgotten, {queues} queues belong to no service now")
    return 0


_ACTIONS = {
    "list": _list,
    "show": _show,
    "label": _label,
    "drift": _show_drift,
    "rotate": _rotate,
    "forget": _forget,
}


async def _find(store: Store, text: str) -> ServiceInfo:
    found = [
        info
        for info in await store.registry.list_services()
        if any(_text(name).startswith(text) for name in (info.service_id, *info.fingerprints))
    ]
    if not found:
        raise Fail(f"no service {text}")
    if len(found) > 1:
        raise Fail(f"{len(found)} services begin with {text}; give more characters")
    return found[0]


def _fingerprint(text: str) -> bytes:
    try:
        raw = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except (binascii.Error, ValueError):
        raw = b""
    if len(raw) != 32:
        raise Fail(f"{text}: a fingerprint is 32 bytes as base64url")
    return raw


def _text(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


def _time(at: float | None) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%S UTC") if at else "unknown"


def _role(info: ServiceInfo) -> str:
    return info.role.name.lower()


def _fold(info: ServiceInfo) -> str:
    fold = info.fold
    if fold is None:
        return "none"
    if fold.done:
        return f"done, {fold.delivered} delivered"
    return f"{fold.delivered}/{fold.ready} delivered, {fold.left} left"


def _drift(info: ServiceInfo) -> str:
    return ", ".join(f"{info.drift.get(kind, 0)} {kind}" for kind in _DRIFT)


def _as_json(info: ServiceInfo) -> dict[str, Any]:
    totals, fold = info.totals, info.fold
    return {
        "service": _text(info.service_id),
        "label": info.label,
        "role": _role(info),
        "created": info.created,
        "certificates": [{"fingerprint": _text(fp), "until": until} for fp, until in info.fingerprints.items()],
        "queues": totals.count,
        "ids_hash": totals.ids_hash.hex(),
        "with_messages": totals.ready,
        "connected": totals.owner is not None,
        "edge": totals.owner.partition(":")[0] if totals.owner else None,
        "since": totals.since,
        "fold": fold._asdict() if fold else None,
        "drift": {kind: info.drift.get(kind, 0) for kind in _DRIFT},
    }


def _print_json(value: object) -> int:
    json.dump(value, sys.stdout, indent=1)
    print()
    return 0
