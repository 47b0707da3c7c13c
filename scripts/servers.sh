#!/usr/bin/env bash
# Fetches what the tests run beside the system's own packages, from newer Debian releases: Redis 8 and Valkey 8 (trixie),
# and crypto_mb, the library that weir.crypto.multibuffer uses (trixie's and forky's). Packages are unpacked into the
# cache and used from there. Nothing is installed, and the system's own apt stays as it is.
# `servers.sh pythons` also fetches newer interpreters, for tests/transport/test_interpreters.py.
# Each directory of the cache appears when it is complete, so a cache of an older form is completed.
set -euo pipefail

scripts=$(dirname "$0")
cache=$HOME/.cache/weir/servers
[ -r /etc/os-release ] && . /etc/os-release
if [ "${ID:-}" != debian ] || ! command -v apt-get >/dev/null; then exit 0; fi
wanted=(trixie)
[ "$(dpkg --print-architecture)" = amd64 ] && wanted+=(crypto_mb-trixie crypto_mb-forky)
[ "${1:-}" = pythons ] && wanted+=(pythons-forky)
for name in "${!wanted[@]}"; do [ -e "$cache/${wanted[name]}" ] && unset "wanted[name]"; done
[ "${#wanted[@]}" -gt 0 ] || exit 0

mkdir -p "$cache"
scratch=$(mktemp -d "$cache/.new-XXXXXX")
trap 'rm -rf "$scratch"' EXIT
log=$scratch/log
give_up() {
  tail -n 3 "$log" 2>/dev/null || true
  echo "servers: $*; the tests use what is here"
  exit 0
}

# An apt of its own for each release (scripts/apt.sh).
prepare_apt() {
  export APT_CONFIG=
  [ -e "$scratch/apt-$1" ] || bash "$scripts/apt.sh" "$1" "$scratch/apt-$1" >"$log" 2>&1 ||
    give_up "the list of $1's packages could not be fetched"
  export APT_CONFIG=$scratch/apt-$1/conf
}

unpack() { # PLACE PACKAGE-FILE...
  local place=$1 package
  shift
  mkdir -p "$place/tree"
  for package in "$@"; do
    dpkg -x "$package" "$place/tree" >"$log" 2>&1 || give_up "a package could not be unpacked"
  done
}

# NAME PROGRAM: a command that starts a program of PLACE's tree with the tree's own C library, which is newer than the
# system's.
wrap() {
  local place=$1 name=$2 program=$3 loader libraries
  loader=$(find "$place/tree" -name 'ld-linux*.so.*' -printf '%P\n' | sort | tail -n 1)
  libraries=$(find "$place/tree" -name libc.so.6 -printf '%P\n')
  cat >"$place/$name" <<WRAPPER
#!/bin/sh
tree=\${0%/*}/tree
${4:-}exec "\$tree/$loader" --library-path "\$tree/${libraries%/*}" "\$tree/$program" "\$@"
WRAPPER
  chmod +x "$place/$name"
  "$place/$name" --version >"$log" 2>&1 || give_up "$name does not run here"
}

# SUITE PACKAGE...: with all that they need.
fetch() {
  prepare_apt "$1"
  timeout 120 apt-get -q -y --download-only --no-install-recommends install "${@:2}" >"$log" 2>&1 </dev/null ||
    give_up "${*:2} could not be fetched"
}

fetch_servers() {
  local place=$scratch/trixie server
  fetch trixie redis-server valkey-server
  unpack "$place" "$scratch"/apt-trixie/archives/*.deb
  for server in redis-server valkey-server; do wrap "$place" "$server" "usr/bin/$server"; done
}

fetch_pythons() {
  local place=$scratch/pythons-forky version
  local versions=(3.13 3.14 3.15)
  fetch forky "${versions[@]/#/python}"
  unpack "$place" "$scratch"/apt-forky/archives/*.deb
  for version in "${versions[@]}"; do
    wrap "$place" "python$version" "usr/bin/python$version" 'export PYTHONHOME="$tree/usr"; '
  done
}

# The library alone: all that it needs of libc and libssl is older than Debian 12's.
fetch_crypto_mb() {
  local suite=$1 place=$scratch/crypto_mb-$1 package
  prepare_apt "$suite"
  # The package's name changes with the version; the development package knows the name.
  package=$(apt-cache depends libcrypto-mb-dev 2>"$log" | awk '/Depends: libcrypto-mb/ && !found { print $2; found = 1 }')
  [ -n "$package" ] || give_up "$suite has no crypto_mb"
  mkdir "$scratch/debs-$suite"
  (cd "$scratch/debs-$suite" && timeout 60 apt-get -q download "$package" >"$log" 2>&1 </dev/null) ||
    give_up "$package could not be fetched"
  unpack "$place" "$scratch/debs-$suite"/*.deb
}

for name in "${wanted[@]}"; do
  echo "servers: fetching $name into $cache"
  case $name in
    trixie) fetch_servers ;;
    pythons-*) fetch_pythons ;;
    *) fetch_crypto_mb "${name#crypto_mb-}" ;;
  esac
  mv -T "$scratch/$name" "$cache/$name"
done
