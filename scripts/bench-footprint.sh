#!/usr/bin/env bash
# Prints what Touchstone itself takes: CPU time, memory, the time of its quick verbs and its
# size; see -h and docs/overhead.md.
set -euo pipefail
export LC_ALL=C

usage() {
	cat <<'END'
usage: bench-footprint.sh [RUNTIME]

Starts 50 and then 500 containers one after the other (scalability.runtime.50 and .500, on
oci/RUNTIME, crun unless given) and prints Touchstone's own CPU time as a share of the CPU time of
what it started, and its peak of resident memory. Prints the median times of touchstone list and
touchstone --help, and the size of the binary.

TOUCHSTONE is the binary, bin/touchstone unless set. It must run as root, with go.
Limits: own CPU 10 %, 64 MiB of memory, 50 ms for a verb, 60 MB of binary. Exit code: 1 if one is
passed.
END
}

die() {
	echo "bench-footprint: $*" >&2
	exit 1
}

while getopts h option; do
	case $option in
	h) usage && exit 0 ;;
	*) usage >&2 && exit 2 ;;
	esac
done
shift $((OPTIND - 1))
runtime=${1:-crun}

root=$(cd "$(dirname "$0")/.." && pwd)
touchstone=${TOUCHSTONE:-$root/bin/touchstone}
[ "$(id -u)" -eq 0 ] || die "the runtimes need root: run it as root"
[ -x "$touchstone" ] || die "there is no $touchstone: run make build, or set TOUCHSTONE"
for program in go "$runtime"; do
	command -v "$program" >/dev/null || die "$program is not on PATH: install it"
done

data=$(mktemp -d)
child=
# shellcheck disable=SC2317 # called by the trap
clean_up() {
	local code=$?
	trap - EXIT
	if [ -n "$child" ]; then
		if kill -INT "$child" 2>/dev/null; then wait "$child" || true; fi
	fi
	rm -rf "$data"
	exit "$code"
}
trap clean_up EXIT
trap 'exit 130' INT TERM

code=0
# limit WHAT VALUE MOST UNIT
limit() {
	local verdict=""
	if ((10#$2 > 10#$3)); then
		verdict=": over the limit"
		code=1
	fi
	echo "$1 $2 $4 (limit $3 $4)$verdict"
}

(cd "$root" && go build -o "$data/figures" ./scripts/figures)

for count in 50 500; do
	"$touchstone" benchmark -d "$data/$count" --targets "oci/$runtime" --filter "scalability.runtime.$count" \
		--runs 1 --warmup 0 --timeout 30m >/dev/null 2>"$data/log" &
	child=$!
	peak=0
	# The kernel keeps the peak: what counts is the last look before the end.
	while [ -e "/proc/$child/status" ]; do
		while read -r key value _; do
			[ "$key" != VmHWM: ] || peak=$value
		done 2>/dev/null <"/proc/$child/status" || true
		kill -0 "$child" 2>/dev/null || break
		sleep 0.05
	done
	wait "$child" || die "scalability.runtime.$count on $runtime did not work: $(cat "$data/log")"
	child=
	"$touchstone" export -d "$data/$count" >"$data/$count.json"
	"$data/figures" cpu "$data/$count.json" || code=1
	limit "oci/$runtime scalability.runtime.$count: peak memory" $(((peak + 1023) / 1024)) 64 MiB
done

# median_ms VERB...: the median time of 20 calls.
median_ms() {
	local began times=()
	for _ in {1..20}; do
		began=${EPOCHREALTIME/./}
		"$touchstone" "$@" >/dev/null
		times+=($((${EPOCHREALTIME/./} - began)))
	done
	mapfile -t times < <(printf '%s\n' "${times[@]}" | sort -n)
	echo $(((times[9] + times[10]) / 2 / 1000))
}
limit "touchstone list: median of 20" "$(median_ms list)" 50 ms
limit "touchstone --help: median of 20" "$(median_ms --help)" 50 ms
limit "binary:" $(($(stat -L -c %s "$touchstone") / 1000000)) 60 MB
exit "$code"
