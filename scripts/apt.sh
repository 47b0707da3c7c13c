#!/usr/bin/env bash
# Makes DIR the state of an apt for another release of Debian: apt.sh SUITE DIR, then APT_CONFIG=DIR/conf apt-get ….
# That apt believes that nothing is installed. It reaches the mirror as the system's apt does, and the system's stays as
# it is. Packages are checked against the archive's keys as always.
set -euo pipefail
suite=$1 state=$2
. /etc/os-release
mirror=$(apt-get indextargets --no-release-info --format '$(REPO_URI) $(RELEASE)' |
  awk -v own="$VERSION_CODENAME" '($2 == own || $2 == "stable") && !found { print $1; found = 1 }')
[ -n "$mirror" ] || { echo "apt knows no mirror of $VERSION_CODENAME" >&2; exit 1; }
mkdir -p "$state"/{lists/partial,archives/partial}
: >"$state/status"
echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror $suite main" >"$state/sources.list"
# The system's proxy and timeouts hold here too; its hooks and pins do not.
{ apt-config dump | grep '^Acquire::' || true
  cat <<CONF
Dir::State "$state"; Dir::State::status "$state/status"; Dir::Cache "$state";
Dir::Etc::main "/dev/null"; Dir::Etc::parts "/dev/null"; Dir::Etc::preferences "/dev/null"; Dir::Etc::preferencesparts "/dev/null";
Dir::Etc::sourcelist "$state/sources.list"; Dir::Etc::sourceparts "/dev/null";
APT::Sandbox::User "$(id -un)";
CONF
} >"$state/conf"
APT_CONFIG=$state/conf timeout 60 apt-get -q update </dev/null
