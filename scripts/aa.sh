#!/usr/bin/env bash
# Compares a runtime with itself in many runs, and counts the verdicts; see -h and docs/aa.md.
set -euo pipefail
export LC_ALL=C

usage() {
	cat <<'END'
usage: aa.sh [-k RUNS] [-n BLOCKS] [RUNTIME]

Makes small runs of operations.container.lifecycle with two targets: the same RUNTIME (default crun) under
two names. Then it counts the verdicts of the reports. A verdict with a difference is a false alarm. The
verdict "too noisy" claims nothing.

  -k RUNS    number of runs (default 40)
  -n BLOCKS  blocks of each run (default 10)

TOUCHSTONE is the binary (default bin/touchstone). The script needs root and go.
Exit code: 1 if the share of false alarms exceeds 5 % by more than two standard errors.
END
}

die() {
	echo "aa: $*" >&2
	exit 1
}

runs=40 blocks=10
while getopts k:n:h option; do
	case $option in
	k) runs=$OPTARG ;;
	n) blocks=$OPTARG ;;
	h) usage && exit 0 ;;
	*) usage >&2 && exit 2 ;;
	esac
done
shift $((OPTIND - 1))
runtime=${1:-crun}
[[ $runs =~ ^[0-9]+$ && $runs -ge 1 ]] || die "-k $runs: must be 1 or more"
[[ $blocks =~ ^[0-9]+$ && $blocks -ge 6 ]] || die "-n $blocks: must be 6 or more, because fewer blocks give no verdict"

root=$(cd "$(dirname "$0")/.." && pwd)
touchstone=${TOUCHSTONE:-$root/bin/touchstone}
[ "$(id -u)" -eq 0 ] || die "the runtimes need root: run it as root"
[ -x "$touchstone" ] || die "$touchstone does not exist: run make build, or set TOUCHSTONE"
for program in go "$runtime"; do
	command -v "$program" >/dev/null || die "$program is not on PATH: install it"
done

data=$(mktemp -d)
trap 'rm -rf "$data"' EXIT
(cd "$root" && go build -o "$data/figures" ./scripts/figures)
binary=$(command -v "$runtime")
for ((run = 0; run < runs; run++)); do
	"$touchstone" benchmark -d "$data/$run" -o json --runtime "a=$binary" --runtime "b=$binary" --targets oci/a,oci/b \
		--filter operations.container.lifecycle --runs "$blocks" --warmup 1 --wait >"$data/$run.json" 2>"$data/log" ||
		die "run $run failed: $(cat "$data/log")"
done
echo "$runtime against itself, $runs runs of $blocks blocks:"
"$data/figures" aa "$data"/*.json
