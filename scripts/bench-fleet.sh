#!/usr/bin/env bash
# Measures a cluster run with many fake nodes on this machine, 1000 unless FLEET_NODES is set: the time until all agents run, the time to collect all
# their records, and the processor time and memory of the coordinator. It must run as root, and builds everything that it needs.
#
#   FLEET_NODES=300 scripts/bench-fleet.sh
#
# Arguments are passed to go test. `scripts/bench-fleet.sh -run TestKills` kills the parts of cluster runs instead; FLEET_KILLS, FLEET_SEED and
# FLEET_MINUTES are the number of the kills, their seed and their time limit, and FLEET_FULL=1 selects the full campaign with 200, which needs the
# machine for itself: half an hour if it is idle.
set -euo pipefail
cd "$(dirname "$0")/.."

if [ "$(id -u)" != 0 ]; then
	echo "bench-fleet: a cluster makes namespaces and containers, which needs root" >&2
	exit 1
fi

make --no-print-directory chaos-programs
path=$(scripts/tools.sh kube kwok):$(scripts/runtimes.sh containerd crun)
[ $# -gt 0 ] || set -- -run TestScale
PATH=$path:$PATH TOUCHSTONE_CHAOS=$PWD/bin/chaos FLEET_NODES=${FLEET_NODES:-1000} go test -count=1 -trimpath -vet=off -v -timeout 4h "$@" ./test/outage
