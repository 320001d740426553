#!/usr/bin/env bash
# Checks the verdicts of this machine with known delays, and prints a table; see -h and docs/selfcheck.md.
set -euo pipefail
export LC_ALL=C

usage() {
	cat <<'END'
usage: verdicts.sh [-k TRIES] [-d TRIES] [-o FOLDER] [-c CAMPAIGN]... [RUNTIME]

Compares RUNTIME (default crun) with itself, without and with a known delay at create, and counts the
verdicts about CreateAndRun. The campaigns are

  aa      benchmark, equal runtimes, 3 minutes a try     wanted: at most 1 alarm in 20 tries
  find    benchmark, 3 % slower, 3 minutes a try         wanted: found in 9 of 10 tries
  equal   ab, equal builds, margin 3 %, 10 minutes       wanted: no try of 20 is worse
  worse   ab, 5 % slower, margin 3 %, 10 minutes         wanted: worse in 9 of 10 tries

  -k TRIES     tries of aa and of equal (default 20)
  -d TRIES     tries of find and of worse (default 10)
  -o FOLDER    keep the results in this folder, and continue with those that it has (default: a temporary
               one, which is removed)
  -c CAMPAIGN  only this campaign; may be repeated (default: all, in up to 6.5 hours)

BUDGET and AB_BUDGET are the longest times of a try (default 3m and 10m). TOUCHSTONE is the binary (default
bin/touchstone). The script needs root and jq.
Exit code: 1 if a campaign does not reach its goal.
END
}

die() {
	echo "verdicts: $*" >&2
	exit 1
}

equal_tries=20 delayed_tries=10 folder= campaigns=()
while getopts k:d:o:c:h option; do
	case $option in
	k) equal_tries=$OPTARG ;;
	d) delayed_tries=$OPTARG ;;
	o) folder=$OPTARG ;;
	c) campaigns+=("$OPTARG") ;;
	h) usage && exit 0 ;;
	*) usage >&2 && exit 2 ;;
	esac
done
shift $((OPTIND - 1))
runtime=${1:-crun}
for tries in "$equal_tries" "$delayed_tries"; do
	[[ $tries =~ ^[0-9]+$ && $tries -ge 1 ]] || die "$tries tries: must be 1 or more"
done
[ "${#campaigns[@]}" -gt 0 ] || campaigns=(aa find equal worse)
for campaign in "${campaigns[@]}"; do
	[[ $campaign =~ ^(aa|find|equal|worse)$ ]] || die "-c $campaign: must be aa, find, equal or worse"
done

root=$(cd "$(dirname "$0")/.." && pwd)
touchstone=${TOUCHSTONE:-$root/bin/touchstone}
[ "$(id -u)" -eq 0 ] || die "the runtimes need root: run it as root"
[ -x "$touchstone" ] || die "$touchstone does not exist: run make build, or set TOUCHSTONE"
for program in jq "$runtime"; do
	command -v "$program" >/dev/null || die "$program is not on PATH: install it"
done
binary=$(command -v "$runtime")

if [ -n "$folder" ]; then
	mkdir -p "$folder"
	data=$(cd "$folder" && pwd)
else
	data=$(mktemp -d)
	trap 'rm -rf "$data"' EXIT
fi
lifecycle=operations.container.lifecycle
budget=${BUDGET:-3m} ab_budget=${AB_BUDGET:-10m}

# delayed NAME DELAY prints the path of the runtime with a delay at create. All runtimes are behind the same kind of program, so that
# only the delay differs.
delayed() {
	"$touchstone" delay-runtime "$binary" "$data/runtimes/$1" --sleep "create=$2"
}

a=$(delayed a 0s)
b=$(delayed b 0s)

# The delay is a share of the median that this machine has.
[ -s "$data/median.json" ] || "$touchstone" benchmark --wait -d "$data/median" -o json --runtime "a=$a" --targets oci/a --filter "$lifecycle" --runs 100 >"$data/median.json" 2>"$data/log" ||
	die "the median of $runtime: $(cat "$data/log")"
value() { jq -er --arg target "$1" ".benchmarks[].metrics[] | select(.name == \"CreateAndRun\").cells[] | select(.target == \$target)$2" "$3"; }
median=$(value oci/a .median "$data/median.json")
share() { awk -v m="$median" -v s="$1" 'BEGIN { printf "%dns", m * s / 100 * 1e9 }'; }
slow3=$(delayed slow3 "$(share 3)")
slow5=$(delayed slow5 "$(share 5)")
awk -v m="$median" -v r="$runtime" 'BEGIN { printf "%s: CreateAndRun %.2f ms; 3 %% is %.0f µs, 5 %% is %.0f µs\n", r, m * 1e3, m * 3e4, m * 5e4 }'

# benchmark DIR OTHER prints the verdict of a comparison of a with OTHER in one run.
benchmark() {
	"$touchstone" benchmark --wait -d "$1" -o json --runtime "a=$a" --runtime "b=$2" --targets oci/a,oci/b --filter "$lifecycle" \
		--runs 100000 --budget "$budget" >"$1.json" 2>"$1.log" || die "$1: $(cat "$1.log")"
	value oci/b .comparison.verdict "$1.json"
}

# compare DIR OTHER prints the answer of ab.
compare() {
	local code=0
	"$touchstone" ab --wait -d "$1" --a "oci/$runtime=$a" --b "oci/$runtime=$2" --margin 3% --budget "$ab_budget" >"$1.txt" 2>"$1.log" || code=$?
	case $code in
	0 | 4 | 6) jq -er .answer "$1/ab.json" ;;
	*) die "$1: exit code $code: $(cat "$1.log")" ;;
	esac
}

failed=0
printf '\n%-9s %5s  %-60s %s\n' campaign tries results goal
for campaign in "${campaigns[@]}"; do
	case $campaign in
	aa) run=benchmark other=$b tries=$equal_tries ;;
	find) run=benchmark other=$slow3 tries=$delayed_tries ;;
	equal) run=compare other=$b tries=$equal_tries ;;
	worse) run=compare other=$slow5 tries=$delayed_tries ;;
	esac
	mkdir -p "$data/$campaign"
	results=$data/$campaign/results
	touch "$results"
	for ((try = $(wc -l <"$results") + 1; try <= tries; try++)); do
		rm -rf "$data/$campaign/$try" # of a try that was interrupted
		$run "$data/$campaign/$try" "$other" >>"$results"
	done
	count() { grep -cx "$1" "$results" || true; }
	case $campaign in
	aa) good=$((($(count 'faster.*') + $(count 'slower.*') + $(count 'mixed.*')) * 20 <= tries)) ;;
	find) good=$(($(count 'slower.*') * 10 >= 9 * tries)) ;;
	equal) good=$(($(count 'worse than the margin') == 0)) ;;
	worse) good=$(($(count 'worse than the margin') * 10 >= 9 * tries)) ;;
	esac
	summary=$(sort "$results" | uniq -c | awk '{ n = $1; $1 = ""; printf "%s%s:%s", sep, n, $0; sep = ", " }')
	if [ "$good" = 1 ]; then goal=reached; else goal=missed failed=1; fi
	printf '%-9s %5d  %-60s %s\n' "$campaign" "$tries" "$summary" "$goal"
done
exit "$failed"
