#!/usr/bin/env bash
# Builds programs that Debian 12 has too old or not at all, each once, from source packages of
# a pinned version, and prints the folders they are in, joined by ":", for PATH:
#
#   PATH=$(scripts/tools.sh runsc youki):$PATH
#   scripts/tools.sh --cached runsc youki   # only what is there already; builds nothing
#
# runsc and youki are for the tests, golangci-lint is for make lint. They stay in
# ${XDG_CACHE_HOME:-~/.cache}/touchstone/tools. Progress goes to standard error.
set -euo pipefail
export LC_ALL=C

root=${XDG_CACHE_HOME:-${HOME:?must be set, or XDG_CACHE_HOME}/.cache}/touchstone/tools

version_of() {
	case $1 in
	runsc) echo v0.0.0-20260905035102-160fafc42237 ;;
	youki) echo 0.7.0 ;;
	golangci-lint) echo v2.12.0 ;;
	*)
		echo "tools: there is no tool $1; there are runsc, youki, golangci-lint" >&2
		exit 2
		;;
	esac
}

# build NAME VERSION DIR puts the program into DIR.
build() {
	case $1 in
	runsc)
		# Its version is set by the linker; without, it says VERSION_MISSING.
		CGO_ENABLED=0 GOBIN=$3 GOFLAGS=-buildvcs=false go install -trimpath \
			-ldflags "-s -w -X gvisor.dev/gvisor/runsc/version.version=$2" "gvisor.dev/gvisor/runsc@$2"
		;;
	youki)
		# The default features lack cgroup v1.
		cargo install youki --version "$2" --locked --no-default-features --features v1,v2,seccomp --root "$3.root" &&
			mv "$3.root/bin/youki" "$3/youki" && rm -rf "$3.root"
		;;
	golangci-lint)
		GOBIN=$3 GOFLAGS=-buildvcs=false go install -trimpath \
			"github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$2"
		;;
	esac
}

new='' pid='' # what the trap cleans up

# install NAME VERSION DIR builds beside DIR and renames, so that DIR is whole or not there.
install() {
	local name=$1 version=$2 dir=$3 log began=$SECONDS
	new=$(mktemp -d "$root/.$name.XXXXXX")
	log=$new/log
	mkdir "$new/bin"
	echo "tools: building $name $version; this takes some minutes, once" >&2
	build "$name" "$version" "$new/bin" >"$log" 2>&1 &
	pid=$!
	trap 'kill "$pid" 2>/dev/null || true; rm -rf "$new"' EXIT
	while kill -0 "$pid" 2>/dev/null; do
		sleep 1
		[ $(((SECONDS - began) % 30)) -ne 0 ] || echo "tools: building $name, $((SECONDS - began)) s so far" >&2
	done
	wait "$pid" || {
		tail -n 40 "$log" >&2
		echo "tools: building $name $version failed; the end of its output is above" >&2
		exit 1
	}
	chmod 0755 "$new/bin" "$new/bin/$name"
	mv -T "$new/bin" "$dir"
	rm -rf "$new"
	trap - EXIT
	echo "tools: built $name $version in $((SECONDS - began)) s" >&2
}

cached=
if [ "${1:-}" = --cached ]; then
	cached=1
	shift
fi
path=
for name; do
	version=$(version_of "$name")
	dir=$root/$name-$version
	if [ ! -x "$dir/$name" ]; then
		[ -z "$cached" ] || continue
		mkdir -p "$root"
		exec 9>"$root/.lock"
		flock 9 # another make may be building the same
		[ -x "$dir/$name" ] || install "$name" "$version" "$dir"
		exec 9>&-
	fi
	path=$path${path:+:}$dir
done
printf '%s\n' "$path"
