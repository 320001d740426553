#!/usr/bin/env bash
# Compares Touchstone's values for the programs of the workload image on bare metal with the values from manual runs of the
# same programs; see -h.
set -euo pipefail
export LC_ALL=C

usage() {
	cat <<'END'
usage: bench-programs.sh [-r ROUNDS] [BENCHMARK...]

Runs the programs of the workload image on bare metal by turns with Touchstone (a trial of the target
native) and by hand, and prints the median of both, and the median of their ratios within a turn with
its interval (95 %). By hand each program runs twice in a turn. The ratio of these two runs stands
beside the first ratio: it is pure chance and shows the resolution of the machine. A ratio is
"within 2 %", or "differs" if its whole interval is outside of 2 %, or is "undecided".

By hand means: by bash and unshare(1), from the same root file system, with the same arguments, in
a mount namespace with /proc, /dev, /sys, a tmpfs at /tmp and an empty directory at /data; in cgroups
of its own beside those of trials, without limits: memory that is charged to a cgroup is slower than
other memory. Servers and their clients are in two network namespaces that ip(8) joins by an Ethernet
pair. The value is what the program itself writes (bash's time where it writes none).

Programs are compared, not machines: both sides run them on the same CPU, on little memory, with files
in memory. Where the kernel puts two processes, which pages it gives them and how much a disk varies
says nothing of who runs the program.

  -r ROUNDS    rounds through all programs, 6 or more (default 7), of which an interval can be made:
               one turn each, two for those that are over soon
  BENCHMARK    what is compared, such as performance.cpu.sevenzip, instead of all

It builds the workload image if there is none, and takes some ten minutes for all. It must run as root,
on a machine that does nothing else. Exit code: 1 unless all values compared are within 2 %.
END
}

die() {
	echo "bench-programs: $*" >&2
	exit 1
}

rounds=7
while getopts r:h option; do
	case $option in
	r) rounds=$OPTARG ;;
	h) usage && exit 0 ;;
	*) usage >&2 && exit 2 ;;
	esac
done
shift $((OPTIND - 1))
[[ $rounds =~ ^[0-9]+$ && $rounds -ge 6 ]] || die "-r $rounds: must be 6 or more"
[ "$(id -u)" -eq 0 ] || die "cgroups and chroot need root: run it as root"

cd "$(dirname "$0")/.."
data=$(mktemp -d)
trap 'rm -rf "$data"' EXIT

package=internal/bench/catalogue
go test -c -o "$data/programs.test" "./$package"
echo "load average before: $(cut -d ' ' -f 1-3 /proc/loadavg), $(nproc) CPUs"
code=0
(cd "$package" && TOUCHSTONE_PEER_ROUNDS=$rounds TOUCHSTONE_PEERS=$* "$data/programs.test" -test.v -test.timeout 0 -test.run '^TestProgramsByHand$') >"$data/log" 2>&1 || code=1
grep -q '^--- PASS' "$data/log" || code=1 # nor may it be skipped
sed -E -e '/^(===|---|PASS|FAIL)/d' -e 's/^    //' -e 's/^[a-z_]+_test\.go:[0-9]+: //' "$data/log"
echo "load average after: $(cut -d ' ' -f 1-3 /proc/loadavg)"
exit "$code"
