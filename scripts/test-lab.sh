#!/usr/bin/env bash
# Boots virtual machines and runs Touchstone in them, after the whole set-up that this needs; this is
# `make test-lab`. See internal/lab. It must run as root: the disks of the machines have files of several users.
# Arguments go to go test.
#
# LAB_OUT is a directory for what comes out of the machines: output of each step, runs as JSON, the report.
set -euo pipefail
cd "$(dirname "$0")/.."

if [ "$(id -u)" != 0 ]; then
	echo "test-lab: the disks of the machines need root" >&2
	exit 1
fi

scripts/setup.sh build cross runtimes image lab
make --no-print-directory probes

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
export CGO_ENABLED=0
for arch in amd64 arm64; do
	echo "test-lab: building for $arch"
	# Debian's gVisor is too old for a network of its own.
	runsc=runsc
	[ "$arch" = "$(go env GOARCH)" ] || runsc+=-$arch
	cp "$(scripts/tools.sh "$runsc")/runsc" "$dir/runsc-$arch"
	for program in guest:internal/lab/guest touchstone:cmd/touchstone; do
		GOARCH=$arch go build -trimpath -buildvcs=false -ldflags '-s -w' -o "$dir/${program%%:*}-$arch" "./${program#*:}"
	done
	for test in native oci; do
		GOARCH=$arch go test -c -trimpath -ldflags '-s -w' -o "$dir/$test-$arch.test" "./internal/engine/$test"
	done
done
touchstone=$dir/touchstone-$(go env GOARCH)
for arch in amd64 arm64; do
	# Debian's point releases take packages of the list off the mirrors: see docs/image.md.
	"$touchstone" image build --arch "$arch" || {
		echo "test-lab: the list of packages is out of date; trying what the mirror has now" >&2
		"$touchstone" image build --arch "$arch" --update
	}
	"$touchstone" image save --arch "$arch" "$dir/workload-$arch.tar"
	list=${TOUCHSTONE_CACHE:-/var/cache/touchstone}/packages-$arch.lock
	[ ! -e "$list" ] || cp "$list" "$dir"
done
path=$(scripts/tools.sh runsc) # for this machine's part of the report
export PATH="$path:$PATH"
# One package, or what it says would be shown at its end.
TOUCHSTONE_LAB=$dir go test -count=1 -v -timeout 30m "$@" ./internal/lab
