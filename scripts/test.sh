#!/usr/bin/env bash
# Runs all tests with real runtimes and engines, after the whole set-up that they need; this is
# `make test`. It must run as root: the tests make containers, cgroups and private daemons.
# Arguments go to go test.
#
# TOUCHSTONE_MUST_RUN names the targets whose tests may not be skipped (see
# internal/engine/enginetest). Unset, it is what the machine can have after the set-up.
set -euo pipefail
cd "$(dirname "$0")/.."

if [ "$(id -u)" != 0 ]; then
	echo "test: real runtimes need root; make test-quick runs without" >&2
	exit 1
fi

scripts/setup.sh build runtimes engines image crun crio youki
# The versions of containerd that Debian has, and the one before the newest, are tried as well.
containerds=$(command -v containerd || true)
tools=(runsc crun containerd containerd-shim-runsc-v1 crio)
must=native,oci/runc,oci/crun,oci/runsc@platform=ptrace,oci/runsc@platform=systrap
must+=,containerd/runc,containerd/crun,containerd/runsc,crio/runc,crio/crun
must+=,docker/runc,docker/crun,docker/runsc,podman/runc,podman/crun
if cargo --version >/dev/null 2>&1 && pkg-config --exists libseccomp; then
	tools+=(youki)
	must+=,oci/youki
else
	echo "test: youki is not tested: there is nothing to build it with (cargo 1.88 or later, libseccomp-dev, pkg-config)" >&2
fi
path=$(scripts/tools.sh "${tools[@]}")
containerds+=${containerds:+:}$(scripts/tools.sh containerd1.7)/containerd
export PATH="$path:$PATH"
export TOUCHSTONE_CONTAINERDS=${TOUCHSTONE_CONTAINERDS-$containerds}
export TOUCHSTONE_MUST_RUN=${TOUCHSTONE_MUST_RUN-$must}
echo "test: may not be skipped: ${TOUCHSTONE_MUST_RUN:-nothing}"

make --no-print-directory build
# Debian's point releases take packages of the list off the mirrors. The tests then go on with what there is now, and a
# maintainer renews the list: see docs/image.md.
bin/touchstone image build || {
	echo "test: the list of packages is out of date; trying what the mirror has now" >&2
	bin/touchstone image build --update
}
go vet ./...
# A package at a time: beside another one's containers, those of this one are slow. The next ones are built meanwhile, and wait
# for the lock. Most time of the tests of a package that run beside each other is waiting.
exec go test -count=1 -p 3 -exec "flock --close '$PWD/scripts/test.sh'" -parallel 4 -timeout 30m "$@" ./...
