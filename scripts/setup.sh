#!/usr/bin/env bash
# Makes the virtual environment: setup.sh PYTHON VENV REQUIREMENTS. Says what is missing and how to get it.
set -euo pipefail
python=$1 venv=$2 requirements=$3

fail() { echo "setup: $*" >&2; exit 1; }

command -v "$python" >/dev/null || fail "no $python here. Weir needs Python 3.11 or newer (Debian: apt install python3 python3-venv), or say which: make setup PYTHON=/path/to/python3.11"
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
  fail "$("$python" --version) is too old: Weir needs 3.11 or newer. Say which to use: make setup PYTHON=/path/to/python3.11"
if ! [ -x "$venv/bin/python" ] || ! "$venv/bin/python" -c '' 2>/dev/null; then
  echo "setup: making $venv with $("$python" --version)"
  "$python" -m venv --clear "$venv" >/dev/null 2>&1 ||
    fail "'$python -m venv' does not work here (Debian: apt install python3-venv)"
fi
count=$(grep -c '==' "$requirements")
echo "setup: installing $count pinned packages"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
"$venv/bin/pip" install --disable-pip-version-check --no-input --progress-bar off --require-hashes -r "$requirements" 2>&1 |
  tee "$log" | awk -v count="$count" '
    /^Collecting|^Requirement already/ { if (++seen % 15 == 0) { print "setup: " seen " of " count; fflush() } }
    /^Installing collected/ { print "setup: unpacking them"; fflush() }' ||
  { tail -n 3 "$log" >&2
    fail "the packages of $requirements could not be installed: is there a network, or a package index configured for pip?"; }
echo "setup: installing weir"
"$venv/bin/pip" install --quiet --disable-pip-version-check --no-input --no-deps --no-build-isolation --no-index -e . ||
  fail "weir itself could not be installed into $venv"
echo "setup: done, $venv/bin/weir is there"
