#!/usr/bin/env bash
# Installs the runtimes and engines of the tests by touchstone setup, and prints their folders, joined by ":", for PATH:
#
#   PATH=$(scripts/runtimes.sh runsc youki):$PATH
#   scripts/runtimes.sh --cached runsc youki    # prints only existing folders, and installs nothing
#   scripts/runtimes.sh --arch arm64 runsc      # for a machine with that architecture
#
# They are always the pinned builds of internal/setup/lock.go: the system's copies and packages depend on the machine. Their store is
# ${XDG_CACHE_HOME:-~/.cache}/touchstone/runtimes. Only this script names it: the tests find their runtimes on PATH alone. TOUCHSTONE
# is the program (default bin/touchstone, which the script builds if it is missing). Progress goes to standard error.
# scripts/setup.sh installs the tools for the builds.
set -euo pipefail
cd "$(dirname "$0")/.."
export TOUCHSTONE_RUNTIMES=${XDG_CACHE_HOME:-${HOME:?must be set, or XDG_CACHE_HOME}/.cache}/touchstone/runtimes
touchstone=${TOUCHSTONE:-bin/touchstone}
[ -x "$touchstone" ] || make --no-print-directory build >&2

arch=() cached=
case ${1:-} in
--cached)
	cached=1
	shift
	;;
--arch)
	arch=(--arch "$2")
	shift 2
	;;
esac
path=
for name; do
	# Parts that are installed cost no second trial. Steps of the tests have runs meanwhile, and judge no time of them.
	[ -n "$cached" ] || "$touchstone" setup --yes --allow-concurrent --source build "${arch[@]}" "$name" >&2
	dir=$("$touchstone" setup --path "${arch[@]}" "$name" 2>/dev/null) || continue
	path=$path${path:+:}$dir
done
printf '%s\n' "$path"
