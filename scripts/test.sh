#!/usr/bin/env bash
# Runs all tests with real runtimes, after the whole set-up that they need; this is `make test`.
# It must run as root: the tests make containers and cgroups. Arguments go to go test.
#
# TOUCHSTONE_MUST_RUN names the targets whose tests may not be skipped (see
# internal/engine/enginetest). Unset, it is all that the conformance suite tries, or all but
# youki where there is no cargo to build it.
set -euo pipefail
cd "$(dirname "$0")/.."

if [ "$(id -u)" != 0 ]; then
	echo "test: real runtimes need root; make test-quick runs without" >&2
	exit 1
fi

scripts/setup.sh build runtimes youki
tools=(runsc youki)
if ! cargo --version >/dev/null 2>&1 || ! pkg-config --exists libseccomp; then
	echo "test: youki is not tested: there is nothing to build it with (cargo 1.88 or later, libseccomp-dev, pkg-config)" >&2
	tools=(runsc)
fi
path=$(scripts/tools.sh "${tools[@]}")
export PATH="$path:$PATH"
if [ -z "${TOUCHSTONE_MUST_RUN+set}" ]; then
	TOUCHSTONE_MUST_RUN=native,oci/runc,oci/crun,oci/runsc@platform=ptrace,oci/runsc@platform=systrap
	[ "${tools[*]}" = runsc ] || TOUCHSTONE_MUST_RUN+=,oci/youki
fi
export TOUCHSTONE_MUST_RUN
echo "test: may not be skipped: ${TOUCHSTONE_MUST_RUN:-nothing}"

scripts/build-probe.sh
go vet ./...
# A package at a time: beside another one's containers, those of this one are slow.
exec go test -count=1 -p 1 -timeout 30m "$@" ./...
