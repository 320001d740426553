#!/usr/bin/env bash
# Installs everything that the tests need, and runs all tests with real runtimes and engines. `make test` calls it. It must run as
# root, because the tests create containers, cgroups and private daemons. Arguments are passed to go test.
#
# TOUCHSTONE_MUST_RUN names the targets whose tests must not be skipped (see internal/engine/enginetest). The default is
# all targets that are available after the installation.
set -euo pipefail
cd "$(dirname "$0")/.."

if [ "$(id -u)" != 0 ]; then
	echo "test: real runtimes need root; make test-quick runs without" >&2
	exit 1
fi

scripts/setup.sh build runtimes engines image crun crio youki
# The tests also run with Debian's containerd and with the version before the newest.
containerds=$(command -v containerd || true)
tools=(runsc crun containerd containerd-shim-runsc-v1 crio)
must=native,oci/runc,oci/crun,oci/runsc@platform=ptrace,oci/runsc@platform=systrap
must+=,containerd/runc,containerd/crun,containerd/runsc,crio/runc,crio/crun
must+=,docker/runc,docker/crun,docker/runsc,podman/runc,podman/crun
if cargo --version >/dev/null 2>&1 && pkg-config --exists libseccomp; then
	tools+=(youki)
	must+=,oci/youki
else
	echo "test: youki is not tested: its build needs cargo 1.88 or later, libseccomp-dev and pkg-config" >&2
fi
path=$(scripts/tools.sh "${tools[@]}")
containerds+=${containerds:+:}$(scripts/tools.sh containerd1.7)/containerd
export PATH="$path:$PATH"
export TOUCHSTONE_CONTAINERDS=${TOUCHSTONE_CONTAINERDS-$containerds}
export TOUCHSTONE_MUST_RUN=${TOUCHSTONE_MUST_RUN-$must}
echo "test: may not be skipped: ${TOUCHSTONE_MUST_RUN:-nothing}"

make --no-print-directory chaos-programs
export TOUCHSTONE_CHAOS=$PWD/bin/chaos # test/chaos runs the shortened campaign with these programs
# A Debian point release removes listed packages from the mirrors. The tests then continue with the current packages, and a
# maintainer must update the list: see docs/image.md.
bin/touchstone image build || {
	echo "test: the list of packages is out of date; trying what the mirror has now" >&2
	bin/touchstone image build --update
}
# Without paths in the objects, a fresh clone uses the objects that another clone has built.
export GOFLAGS="${GOFLAGS:+$GOFLAGS }-trimpath"
go vet ./...
# Run the tests of one package at a time, because containers of other packages would slow them down. go test builds the next packages
# meanwhile, and they wait for the lock. Within a package tests run in parallel, because they mostly wait.
exec go test -count=1 -vet=off -p 3 -exec "flock --close '$PWD/scripts/test.sh'" -parallel 4 -timeout 30m "$@" ./...
