#!/usr/bin/env bash
# Redis 8 and Valkey 8 for the store's tests, whatever the system has: Debian 13's packages, unpacked into the cache with
# the libraries they need and run from there. Nothing is installed, and the system's own apt stays as it is.
set -euo pipefail

suite=trixie
servers=$HOME/.cache/weir/servers
place=$servers/$suite
[ -e "$place" ] && exit 0
[ -r /etc/os-release ] && . /etc/os-release
if [ "${ID:-}" != debian ] || ! command -v apt-get >/dev/null; then exit 0; fi

mkdir -p "$servers"
work=$(mktemp -d "$servers/.new-XXXXXX")
trap 'rm -rf "$work"' EXIT
log=$work/log
leave() {
  tail -n 3 "$log" 2>/dev/null || true
  echo "servers: $*; the store's tests run on the servers that are here"
  exit 0
}

mirror=$(apt-get indextargets --no-release-info --format '$(REPO_URI) $(RELEASE)' |
  awk -v own="$VERSION_CODENAME" '($2 == own || $2 == "stable") && !found { print $1; found = 1 }')
[ -n "$mirror" ] || leave "apt knows no mirror of $VERSION_CODENAME"
echo "servers: fetching Redis 8 and Valkey 8 of Debian's $suite into $place"
mkdir -p "$work"/{apt/lists/partial,apt/archives/partial,tree}
: >"$work/apt/status"
echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror $suite main" >"$work/apt/sources.list"
# The system's ways to the mirror hold here too (a proxy, its time limits); its hooks and pins do not.
{ apt-config dump | grep '^Acquire::' || true
  cat <<CONF
Dir::State "$work/apt"; Dir::State::status "$work/apt/status"; Dir::Cache "$work/apt";
Dir::Etc::main "/dev/null"; Dir::Etc::parts "/dev/null"; Dir::Etc::preferences "/dev/null"; Dir::Etc::preferencesparts "/dev/null";
Dir::Etc::sourcelist "$work/apt/sources.list"; Dir::Etc::sourceparts "/dev/null";
APT::Sandbox::User "$(id -un)";
CONF
} >"$work/apt/conf"
export APT_CONFIG=$work/apt/conf
{ timeout 60 apt-get -q update &&
  timeout 60 apt-get -q -y --download-only --no-install-recommends install redis-server valkey-server; } \
  >"$log" 2>&1 </dev/null || leave "they could not be fetched"
for package in "$work"/apt/archives/*.deb; do
  dpkg -x "$package" "$work/tree" >"$log" 2>&1 || leave "a package could not be unpacked"
done

# Their C library is newer than the system's: each starts with its own loader.
loader=$(find "$work/tree" -name 'ld-linux*.so.*' -printf '%P\n' | sort | tail -n 1)
libraries=$(find "$work/tree" -name libc.so.6 -printf '%P\n')
for server in redis-server valkey-server; do
  cat >"$work/$server" <<WRAPPER
#!/bin/sh
tree=\${0%/*}/tree
exec "\$tree/$loader" --library-path "\$tree/${libraries%/*}" "\$tree/usr/bin/$server" "\$@"
WRAPPER
  chmod +x "$work/$server"
  "$work/$server" --version >"$log" 2>&1 || leave "$server does not run here"
done
rm -rf "$work/apt" "$log"
mv -T "$work" "$place"
