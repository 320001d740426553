#!/usr/bin/env bash
# Measures Touchstone's own use of resources: CPU time, memory, bytes written to disks, the time of its short commands and
# its size; see -h and docs/overhead.md.
set -euo pipefail
export LC_ALL=C

usage() {
	cat <<'END'
usage: bench-footprint.sh [RUNTIME]

Starts 50, 500 and 1000 containers one after the other (scalability.runtime.50, .500, .1000, on
oci/RUNTIME, crun unless given) and prints Touchstone's own CPU time as a share of the CPU time of
what it started, and its peak of resident memory.

Executes the quick plan, all of its blocks, on native and each runtime found, with every place
that it may write to on a disk of its own (ext4 on a loop device; /run is in memory, as usual), and
prints the peak of resident memory and how many bytes each disk was given to write, the file
system's journal included. performance.disk.blog is left out: what it writes is a load.

Prints the median times of touchstone list and touchstone --help, and the size of the binary.

TOUCHSTONE is the binary, bin/touchstone unless set. FOOTPRINT_COUNTS are the numbers of containers,
"50 500 1000" unless set, and FOOTPRINT_FILTER selects benchmarks of the quick plan. It must run as root, with go and the tools of
ext4.
Limits: own CPU 10 %, 64 MiB of memory, 20 MB written with the quick plan, 50 ms for a verb, 60 MB of
binary. Exit code: 1 if one is passed.
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
[ "$(id -u)" -eq 0 ] || die "the runtimes need root: run it as root"
# Run in a private mount namespace. The kernel removes its mounts and loop devices when the script ends.
if [ -z "${FOOTPRINT_MOUNTS:-}" ]; then
	FOOTPRINT_MOUNTS=own exec unshare --mount --propagation private "$0" "$@"
fi
shift $((OPTIND - 1))
runtime=${1:-crun}

root=$(cd "$(dirname "$0")/.." && pwd)
touchstone=${TOUCHSTONE:-$root/bin/touchstone}
[ -x "$touchstone" ] || die "$touchstone does not exist: run make build, or set TOUCHSTONE"
for program in go mkfs.ext4 findmnt "$runtime"; do
	command -v "$program" >/dev/null || die "$program is not on PATH: install it"
done

data=$(mktemp -d)
child=
declare -A disks=() # folder by what it is for
# shellcheck disable=SC2317 # called by the trap
clean_up() {
	local code=$?
	trap - EXIT
	if [ -n "$child" ]; then
		if kill -INT "$child" 2>/dev/null; then wait "$child" || true; fi
	fi
	[ ${#disks[@]} = 0 ] || umount "${disks[@]}" || true
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

# run FOLDER FLAGS...: runs touchstone benchmark, and sets peak to its peak resident memory in MiB.
run() {
	"$touchstone" benchmark --wait -d "$@" >/dev/null 2>"$data/log" &
	child=$!
	peak=0
	# The kernel stores the peak, so the last read before the exit counts.
	while [ -e "/proc/$child/status" ]; do
		while read -r key value _; do
			[ "$key" != VmHWM: ] || peak=$value
		done 2>/dev/null <"/proc/$child/status" || true
		kill -0 "$child" 2>/dev/null || break
		sleep 0.05
	done
	wait "$child" || die "touchstone benchmark -d $* failed: $(cat "$data/log")"
	child=
	peak=$(((peak + 1023) / 1024))
}

(cd "$root" && go build -o "$data/figures" ./scripts/figures)

for count in ${FOOTPRINT_COUNTS:-50 500 1000}; do
	run "$data/$count" --targets "oci/$runtime" --filter "scalability.runtime.$count" --runs 1 --warmup 0 --timeout 30m
	"$touchstone" export -d "$data/$count" >"$data/$count.json"
	"$data/figures" cpu "$data/$count.json" || code=1
	limit "oci/$runtime scalability.runtime.$count: peak memory" "$peak" 64 MiB
done

# disk PURPOSE FOLDER: mounts an empty disk with the block size of SD cards. mkfs must initialize all tables now, because
# later writes of the kernel would be counted.
disk() {
	local image="$data/disk${#disks[@]}"
	truncate -s 512M "$image"
	mkfs.ext4 -q -b 4096 -E lazy_itable_init=0,lazy_journal_init=0 "$image"
	mkdir -p "$2"
	mount -o loop,noatime "$image" "$2"
	disks[$1]=$2
}

# written FOLDER: prints the number of bytes written to the disk there so far.
written() {
	sync -f "$1"
	local device
	device=$(findmnt -n -o SOURCE --mountpoint "$1")
	awk '{ print $7 * 512 }' "/sys/block/${device#/dev/}/stat"
}

mount -t tmpfs -o mode=755 tmpfs /run
disk "results (SQLite, report)" "$data/results"
disk "data (/var/lib/touchstone)" /var/lib
disk "temporary files and caches" "$data/rest"
declare -A before=()
for what in "${!disks[@]}"; do before[$what]=$(written "${disks[$what]}"); done
TMPDIR=$data/rest HOME=$data/rest XDG_CACHE_HOME=$data/rest TOUCHSTONE_CACHE=$data/rest \
	run "$data/results" --plan quick --budget 1h \
	--filter "${FOOTPRINT_FILTER:-operations,scalability.runtime.5,performance.memory.stream,performance.syscall,limits.memory}"
limit "quick plan: peak memory" "$peak" 64 MiB
trials=$("$touchstone" export -d "$data/results" | grep -c '"seq":')
total=0
for what in "${!disks[@]}"; do
	bytes=$(($(written "${disks[$what]}") - before[$what]))
	total=$((total + bytes))
	echo "quick plan: written to $what: $((bytes / 1000)) kB"
done
echo "quick plan: written for each of $trials trials: $((total / trials / 1000)) kB"
limit "quick plan: written" $(((total + 999999) / 1000000)) 20 MB

# median_ms COMMAND...: prints the median time of 20 calls.
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
