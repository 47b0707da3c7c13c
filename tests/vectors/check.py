"""Hold a file of golden bytes against Weir: `python -m tests.vectors.check FILE`.

Every entry is encoded and decoded. The last line says how many passed and failed; an entry without a check fails.
"""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.vectors import crypto_checks, wire_checks
from tests.vectors.fixtures import VECTORS, NoCheck, Vectors
from tests.vectors.outcome import Check

PARTS: dict[str, Callable[[Vectors], Iterator[Check]]] = {
    "consts": crypto_checks.consts,
    "keys": crypto_checks.keys,
    "certs": crypto_checks.certs,
    "smp_commands": wire_checks.smp_commands,
    "smp_responses": wire_checks.smp_responses,
    "ntf_commands": wire_checks.ntf_commands,
    "ntf_responses": wire_checks.ntf_responses,
    "client_transmissions": wire_checks.client_transmissions,
    "server_transmissions": wire_checks.server_transmissions,
    "batches": wire_checks.batches,
    "decode": wire_checks.decode,
    "handshakes": wire_checks.handshakes,
    "sessions": wire_checks.sessions,
    "ids_hash": crypto_checks.ids_hashes,
    "authenticators": crypto_checks.authenticators,
    "crypto": crypto_checks.crypto,
    "msg_encryption": crypto_checks.msg_encryption,
    "nmsg": crypto_checks.nmsg,
    "proxy": crypto_checks.proxy,
}


def run(vectors: Vectors, part: str) -> Iterator[tuple[str, str | None]]:
    """(entry, why it failed or None) for each entry of a part."""
    if part not in PARTS:
        entries = vectors.data[part]
        for number in range(max(1, len(entries)) if isinstance(entries, list | dict) else 1):
            yield f"{part}[{number}]", "there is no check for it"
        return
    checks = PARTS[part](vectors)
    while True:
        try:
            name, check = next(checks)
        except StopIteration:
            return
        except Exception as error:  # the part is not of the shape that the page describes
            yield part, f"{type(error).__name__}: {error}"
            return
        yield f"{part}: {name}", _outcome(check)


def _outcome(check: Callable[[], None] | None) -> str | None:
    if check is None:
        return "there is no check for it"
    try:
        check()
    except NoCheck as error:
        return f"there is no check for it: {error}"
    except Exception as error:  # an entry that fails does not stop the others
        return str(error) if isinstance(error, AssertionError) else f"{type(error).__name__}: {error}"
    return None


def main(arguments: list[str]) -> int:
    path = Path(arguments[0]) if arguments else VECTORS
    try:
        vectors = Vectors(path)
    except (OSError, ValueError) as error:
        print(f"{path}: {error}")
        print("0 passed, 1 failed")
        return 1
    passed = failed = 0
    for part in vectors.parts:
        for name, problem in run(vectors, part):
            if problem is None:
                passed += 1
            else:
                failed += 1
                print(f"FAILED {name}: {problem}")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
