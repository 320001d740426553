#!/usr/bin/env bash
# Builds virtual machines, boots them and runs Touchstone in them. It installs everything that this needs.
# `make test-lab` calls it; the code is in test/lab. It must run as root: the disks hold files of several users.
# Arguments are passed to go test.
#
# TOUCHSTONE_KATA names an installation of Kata Containers: the folder with an unpacked release, see CONTRIBUTING.md. Without it the
# machines do not test Kata.
#
# LAB_GUESTS selects benchmarks for TestGuests, which takes an hour and is skipped without it: see scripts/workload-matrix.sh.
#
# LAB_SUITES selects targets with KVM for TestSuites, as in LAB_SUITES="containerd/kata docker/kata" or LAB_SUITES=all. It takes up to half
# an hour for each target, and is skipped without it.
#
# LAB_SOAK selects steps of TestSoak, as in LAB_SOAK="soak vsock" or LAB_SOAK=all. It causes faults of virtual machines for an hour, and is
# skipped without it: see CONTRIBUTING.md.
#
# LAB_OUT names a directory for the results: the output of each step, and the runs as JSON.
set -euo pipefail
cd "$(dirname "$0")/.."

if [ "$(id -u)" != 0 ]; then
	echo "test-lab: the disks of the machines need root" >&2
	exit 1
fi

if [ -n "${TOUCHSTONE_KATA:-}" ]; then
	TOUCHSTONE_KATA=$(realpath -e "$TOUCHSTONE_KATA") # go test runs the tests in their directory
	export TOUCHSTONE_KATA
fi

scripts/setup.sh runtimes image lab
make --no-print-directory probes

# Machines of another architecture boot only in some changes: see test/cells.
arches=(amd64 arm64)
case ,${TOUCHSTONE_CELLS:-all}, in
*,all,* | *,lab/arm,* | *,lab/faults,* | *,lab/controllers,*) ;;
*) arches=(amd64) ;;
esac

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
export CGO_ENABLED=0
version=$(git describe --tags --always --dirty 2>/dev/null || echo dev)
for arch in "${arches[@]}"; do
	echo "test-lab: building for $arch"
	# Debian's gVisor is too old to run containers with their own network.
	cp "$(scripts/runtimes.sh --arch "$arch" runsc)/runsc" "$dir/runsc-$arch"
	for program in guest:test/lab/guest touchstone:cmd/touchstone; do
		GOARCH=$arch go build -trimpath -buildvcs=false -ldflags "-s -w -X github.com/touchstone-bench/touchstone/internal/cli.version=$version" -o "$dir/${program%%:*}-$arch" "./${program#*:}"
	done
	tests=(native oci)
	[ "$arch" != amd64 ] || tests+=(cri ${LAB_SUITES:+docker})
	for test in "${tests[@]}"; do
		GOARCH=$arch go test -c -trimpath -ldflags '-s -w' -o "$dir/$test-$arch.test" "./internal/engine/$test"
	done
done
touchstone=$dir/touchstone-$(go env GOARCH)
TOUCHSTONE=$touchstone scripts/image.sh "${arches[@]}"
for arch in "${arches[@]}"; do
	"$touchstone" image save --arch "$arch" "$dir/workload-$arch.tar"
	list=${TOUCHSTONE_CACHE:-/var/cache/touchstone}/packages-$arch.lock
	[ ! -e "$list" ] || cp "$list" "$dir"
done
# containerd is built for this machine, and runs in the machine for amd64.
if [ -n "${TOUCHSTONE_KATA:-}${LAB_SUITES:-}" ] && [ "$(go env GOARCH)" = amd64 ]; then
	cp "$(scripts/runtimes.sh containerd)"/{containerd,containerd-shim-runc-v2} "$dir"
	[ -z "${LAB_SUITES:-}" ] || cp "$(scripts/runtimes.sh runsc)/containerd-shim-runsc-v1" "$(scripts/runtimes.sh crio)"/{crio,pinns} "$dir"
fi
# TestCluster runs a cluster in a machine for amd64.
case ,${TOUCHSTONE_CELLS:-all}, in
*,all,* | *,lab/cluster,*)
	mkdir "$dir/cluster"
	cp scripts/cluster.sh "$(scripts/tools.sh kube)"/{kube,cluster-host} "$(scripts/runtimes.sh containerd)"/{containerd,ctr,containerd-shim-runc-v2} "$dir/cluster"
	cp "$(scripts/runtimes.sh runsc)"/{runsc,containerd-shim-runsc-v1} "$dir/cluster"
	cp internal/image/probe/probe-amd64 "$dir/cluster/probe"
	go test -c -trimpath -ldflags '-s -w' -o "$dir/cluster/cluster.test" ./test/cluster
	;;
esac
# With a single package, go test prints progress at once and not at the end.
TOUCHSTONE_LAB=$dir go test -count=1 -trimpath -vet=off -v -timeout 70m "$@" ./test/lab
