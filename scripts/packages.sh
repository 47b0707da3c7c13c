#!/usr/bin/env bash
# What some tests need from the system. As root on Debian it is installed, with a line that says so; otherwise the
# tests that need it say so, one line each.
set -euo pipefail
bash "$(dirname "$0")/servers.sh"

declare -A package=(
  [redis-server]=redis-server
  [openssl]=openssl
  [chromium]=chromium
  [chromedriver]=chromium-driver
  [java]=openjdk-17-jre-headless
  [mvn]=maven
  [faketime]=faketime
  [tc]=iproute2
)
missing=()
for command in redis-server openssl chromium chromedriver java mvn faketime tc; do
  command -v "$command" >/dev/null || missing+=("${package[$command]}")
done
[ ${#missing[@]} -eq 0 ] && exit 0
if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null; then
  echo "packages: not here: ${missing[*]}; the tests that need them are left out (Debian: apt install ${missing[*]})"
  exit 0
fi
echo "packages: installing ${missing[*]} with apt-get"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
export DEBIAN_FRONTEND=noninteractive
# redis-server's own unit must not start a server beside the tests' servers.
if ! { [ -d /var/lib/apt/lists ] && ls /var/lib/apt/lists/*Packages* >/dev/null 2>&1 || apt-get update -q; } >"$log" 2>&1 ||
  ! RUNLEVEL=1 apt-get install -q -y --no-install-recommends "${missing[@]}" >"$log" 2>&1; then
  tail -n 3 "$log"
  echo "packages: apt-get could not install them; the tests that need them are left out"
fi
