#!/usr/bin/env bash
# Compares a runtime with itself, again and again, and counts the verdicts; see -h and
# docs/aa.md.
set -euo pipefail
export LC_ALL=C

usage() {
	cat <<'END'
usage: aa.sh [-k RUNS] [-n BLOCKS] [RUNTIME]

Makes small runs of operations.container.lifecycle with two targets that are the same RUNTIME (crun
unless given) under two names, and counts the verdicts of the reports: those that claim a difference are
false alarms, those that say "too noisy" claim nothing.

  -k RUNS    number of runs (default 40)
  -n BLOCKS  blocks of each (default 10)

TOUCHSTONE is the binary, bin/touchstone unless set. It must run as root, with go.
Exit code: 1 if the share of false alarms passes 5 % by more than two standard errors.
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
[[ $blocks =~ ^[0-9]+$ && $blocks -ge 6 ]] || die "-n $blocks: must be 6 or more, fewer carry no verdict"

root=$(cd "$(dirname "$0")/.." && pwd)
touchstone=${TOUCHSTONE:-$root/bin/touchstone}
[ "$(id -u)" -eq 0 ] || die "the runtimes need root: run it as root"
[ -x "$touchstone" ] || die "there is no $touchstone: run make build, or set TOUCHSTONE"
for program in go "$runtime"; do
	command -v "$program" >/dev/null || die "$program is not on PATH: install it"
done

data=$(mktemp -d)
trap 'rm -rf "$data"' EXIT
(cd "$root" && go build -o "$data/figures" ./scripts/figures)
binary=$(command -v "$runtime")
for ((run = 0; run < runs; run++)); do
	"$touchstone" benchmark -d "$data/$run" -o json --runtime "a=$binary" --runtime "b=$binary" --targets oci/a,oci/b \
		--filter operations.container.lifecycle --runs "$blocks" --warmup 1 >"$data/$run.json" 2>"$data/log" ||
		die "run $run did not work: $(cat "$data/log")"
done
echo "$runtime against itself, $runs runs of $blocks blocks:"
"$data/figures" aa "$data"/*.json
