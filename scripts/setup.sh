#!/usr/bin/env bash
# Makes the virtual environment: setup.sh PYTHON VENV REQUIREMENTS. Says what is missing and how to get it.
# pip installs uv, and uv the rest: in seconds, where pip takes a minute. Where uv cannot, pip installs everything.
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
log=$(mktemp)
trap 'rm -f "$log"' EXIT
pip=("$venv/bin/pip" install --disable-pip-version-check --no-input --progress-bar off)

# uv asks the package index that pip is told to ask, and trusts the same certificates.
configured() { "$venv/bin/pip" config list 2>/dev/null | sed -n "s/^[a-z:]*[.]$1='\(.*\)'$/\1/p" | tail -n 1; }
with_uv() {
  local index links certificates
  index=$(configured index-url) links=$(configured find-links) certificates=$(configured cert)
  "${pip[@]}" --no-compile --require-hashes -r <(awk '/^[a-z]/ { uv = /^uv==/ } uv' "$requirements") || return
  env ${index:+UV_DEFAULT_INDEX="$index"} ${links:+UV_FIND_LINKS="$links"} ${certificates:+SSL_CERT_FILE="$certificates"} \
    UV_LINK_MODE=copy "$venv/bin/uv" pip install --python "$venv/bin/python" --require-hashes -r "$requirements"
}
with_pip() {
  "${pip[@]}" --require-hashes -r "$requirements"
}
echo "setup: installing $(grep -c '==' "$requirements") pinned packages"
if ! with_uv >"$log" 2>&1; then
  echo "setup: not with uv ($(tail -n 1 "$log")); pip takes about a minute"
  with_pip >"$log" 2>&1 ||
    { tail -n 3 "$log" >&2
      fail "the packages of $requirements could not be installed: is there a network, or a package index configured for pip?"; }
fi
echo "setup: installing weir"
"$venv/bin/pip" install --quiet --disable-pip-version-check --no-input --no-deps --no-build-isolation --no-index -e . ||
  fail "weir itself could not be installed into $venv"
echo "setup: done, $venv/bin/weir is there"
