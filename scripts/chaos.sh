#!/usr/bin/env bash
# Runs the adversarial campaign on this machine, in namespaces: hostile runtimes, daemons, neighbours and hosts, and kills at random moments.
# `make chaos` calls it; the code is in test/chaos. It must run as root and installs everything that it needs. It takes about an hour. Without
# arguments it writes the table of docs/reliability.md. Arguments are passed to go test, and then the table stays as it is.
#
#   scripts/chaos.sh -run TestLies             # one case
#   CHAOS_FULL= scripts/chaos.sh -run Kills    # the shortened form
#   CHAOS_KILLS=5000 CHAOS_SEED=7 scripts/chaos.sh -run Kills
#
# make test runs the shortened form too. CHAOS_KILLS is the number of kills of case 9: 1000, or 12 in the shortened form. CHAOS_SEED is the seed
# of their moments; each campaign prints its seed.
set -euo pipefail
cd "$(dirname "$0")/.."

if [ "$(id -u)" != 0 ]; then
	echo "chaos: the campaign makes namespaces and containers, which needs root" >&2
	exit 1
fi

scripts/setup.sh runtimes engines crio
make --no-print-directory chaos-programs
path=$(scripts/runtimes.sh runsc crun containerd crio)
export PATH="$path:$PATH"
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
[ -z "${CHAOS_FULL-1}" ] || export CHAOS_FULL=1
code=0
# The cases mostly wait for time limits, so several run at the same time.
CHAOS_OUT=$dir/campaign.json TOUCHSTONE_CHAOS=$PWD/bin/chaos go test -count=1 -trimpath -vet=off -v -parallel 3 -timeout 4h "$@" ./test/chaos || code=$?
if [ $# = 0 ] && [ -e "$dir/campaign.json" ]; then
	go test ./internal/docgen -count=1 -run TestCampaignIsFresh -update -campaign "$dir/campaign.json"
fi
exit "$code"
