#!/usr/bin/env bash
# Installs everything that the tests need, and runs them: the pure tests, the lint, and the tests of real runtimes, engines and virtual
# machines. `make test` and `make test-all` call it. It must run as root, because the tests create containers, cgroups and private daemons.
# Arguments are passed to the suite (test/suite):
#
#   scripts/test.sh                       # the tests of a change
#   scripts/test.sh -all                  # all tests
#   scripts/test.sh -only engines         # one step, and the steps that it needs
#   TOUCHSTONE_CELLS=lab/arm,oci/crun scripts/test.sh
#
# TOUCHSTONE_MUST_RUN names the targets whose tests must not be skipped (see internal/engine/enginetest). The default is
# all targets that are available after the installation. TOUCHSTONE_CELLS names the heavy tests to run (see test/cells), or "all" or "none".
set -euo pipefail
cd "$(dirname "$0")/.."

if [ "$(id -u)" != 0 ]; then
	echo "test: real runtimes need root; make test-quick runs without" >&2
	exit 1
fi

# All builds make the same objects, which are the program's: a new machine compiles each package once.
export CGO_ENABLED=0 GOFLAGS=-trimpath

scripts/setup.sh build cross bpf runtimes engines image lab crun crio youki tests
must=native,oci/runc,oci/crun,oci/runsc@platform=ptrace,oci/runsc@platform=systrap
must+=,containerd/runc,containerd/crun,containerd/runsc,crio/runc,crio/crun
must+=,docker/runc,docker/crun,docker/runsc,podman/runc,podman/crun
without=()
if cargo --version >/dev/null 2>&1 && pkg-config --exists libseccomp; then
	must+=,oci/youki
else
	without=(-without youki)
	echo "test: youki is not tested: its build needs cargo 1.88 or later, libseccomp-dev and pkg-config" >&2
fi
export TOUCHSTONE_MUST_RUN=${TOUCHSTONE_MUST_RUN-$must}
echo "test: may not be skipped: ${TOUCHSTONE_MUST_RUN:-nothing}"

# npm is large, so it is used only where it is installed.
if command -v npm >/dev/null && axe=$(scripts/tools.sh axe-core); then
	export TOUCHSTONE_AXE=$axe/axe.min.js
else
	echo "test: the accessibility of pages is not tested: that needs npm and its registry" >&2
fi

make --no-print-directory build # the probe, which the code embeds
go build -trimpath -buildvcs=false -o bin/suite ./test/suite
exec bin/suite "${without[@]}" "$@"
