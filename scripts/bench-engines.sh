#!/usr/bin/env bash
# Compares Touchstone's times and rates with the engines' own tools, and measures the duration of a plan over all
# engines; see -h and docs/overhead.md.
set -euo pipefail
export LC_ALL=C

usage() {
	cat <<'END'
usage: bench-engines.sh [-r ROUNDS] [-m] [CONTAINERD...]

Compares Touchstone with peers at the same private daemons, in batches that take turns:

  - the steps of a container's life over CRI with those that critest -benchmark tells
  - the rate of pods that are made and removed with that of containerd-stress, by 1, 4 and 8 workers
  - a whole life with docker run --rm

and prints medians and their ratios, each with its 95 % interval from the rounds.

  -r ROUNDS    rounds of a batch of each side (default 12: some twenty minutes); fewer than 6 give no
               interval, and only show that the comparison works
  -m           then execute examples/matrix.yaml and print how long it takes (limit 15 minutes)
  CONTAINERD   binaries of containerd, each with its shim beside it; unless given the one of
               scripts/runtimes.sh

It sets up the engines and builds the peers, which takes some minutes the first time. It must run
as root, on a machine that does nothing else. Exit code: 1 if a figure is beyond its limit: 10 %
apart in the time of a life (of the same requests), 95 % of the rate.
END
}

die() {
	echo "bench-engines: $*" >&2
	exit 1
}

rounds=12 matrix=
while getopts r:mh option; do
	case $option in
	r) rounds=$OPTARG ;;
	m) matrix=1 ;;
	h) usage && exit 0 ;;
	*) usage >&2 && exit 2 ;;
	esac
done
shift $((OPTIND - 1))
[[ $rounds =~ ^[0-9]+$ && $rounds -ge 1 ]] || die "-r $rounds: must be 1 or more"
[ "$(id -u)" -eq 0 ] || die "the engines need root: run it as root"

cd "$(dirname "$0")/.."
touchstone=${TOUCHSTONE:-$PWD/bin/touchstone}
[ -z "$matrix" ] || [ -x "$touchstone" ] || die "$touchstone does not exist: run make build, or set TOUCHSTONE"
for program in "$@"; do
	[ -x "$program" ] || die "$program does not exist"
done

scripts/setup.sh runtimes engines
crictl=$(scripts/tools.sh crictl)
containerd=$(scripts/runtimes.sh containerd)
[ $# -gt 0 ] || set -- "$containerd/containerd"

data=$(mktemp -d)
trap 'rm -rf "$data"' EXIT
# A directory with only these tools, so that the measured containerd does not depend on the order of PATH.
mkdir "$data/peers"
ln -s "$crictl/critest" "$containerd/containerd-stress" "$data/peers"

code=0
# compare PACKAGE TEST: runs a comparison and prints its result.
compare() {
	(cd "internal/engine/$1" && TOUCHSTONE_PEER_ROUNDS=$rounds "$data/$1.test" -test.v -test.timeout 2h -test.run "^$2\$") >"$data/log" 2>&1 || code=1
	grep -q '^--- PASS' "$data/log" || code=1 # nor may it be skipped
	sed -E -e '/^(===|---|PASS|FAIL)/d' -e 's/^    //' -e 's/^[a-z_]+_test\.go:[0-9]+: //' "$data/log"
	echo
}

for package in cri docker; do
	go test -c -o "$data/$package.test" "./internal/engine/$package"
done
echo "load average before: $(cut -d ' ' -f 1-3 /proc/loadavg), $(nproc) CPUs"
usual=$PATH
for program; do
	PATH="$data/peers:$(dirname "$program"):$usual"
	compare cri TestLifecycleBesideCritest
	compare cri TestRateBesideStress
done
PATH=$usual
compare docker TestLifeBesideDockerRun

if [ -n "$matrix" ]; then
	path=$(scripts/runtimes.sh runsc youki crun containerd crio)
	began=$SECONDS
	PATH="$path:$PATH" "$touchstone" benchmark -f examples/matrix.yaml --managed -d "$data/out" >"$data/log" 2>&1 || {
		tail -n 40 "$data/log" >&2
		code=1
	}
	took=$((SECONDS - began))
	verdict=
	if ((took > 15 * 60)); then
		verdict=": over the limit"
		code=1
	fi
	echo "examples/matrix.yaml: $((took / 60)) min $((took % 60)) s (limit 15 min)$verdict"
fi
echo "load average after: $(cut -d ' ' -f 1-3 /proc/loadavg)"
exit "$code"
