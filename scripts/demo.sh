#!/usr/bin/env bash
# Installs everything that a measurement needs, and measures the runtimes of this machine. `make demo` calls it. It must run
# as root. OUT is the folder for the results (default out). Arguments are passed to touchstone benchmark.
#
# It uses the runtimes and engines of Debian (runc, crun, containerd, Docker, Podman), and those that make test has installed before. Debian's
# runsc of 2022 does not work behind engines, so touchstone setup brings a current one, by a build of some minutes. In a terminal it asks before.
# DEMO_YES=1 is the answer yes. The daemons are private: it does not start or use the system's daemons.
set -euo pipefail
cd "$(dirname "$0")/.."
out=${OUT:-out}

if [ "$(id -u)" != 0 ]; then
	echo "demo: measuring the runtimes' own cost needs root: sudo make demo" >&2
	echo "demo: without root, bin/touchstone benchmark measures rootless containers" >&2
	exit 1
fi

log=$(mktemp) note=
trap 'rm -f "$log"; [ -z "$note" ] || kill "$note"' EXIT

# quietly WHAT COMMAND...: prints WHAT if the command takes longer than two seconds, then the time every 30 seconds. It prints the output of
# the command only if the command fails.
quietly() {
	local what=$1 began=$SECONDS code=0
	shift
	{ # a killed loop leaves sleep behind, which must not hold the output open
		sleep 2 >/dev/null 2>&1
		echo "demo: $what …"
		while sleep 30 >/dev/null 2>&1; do
			echo "demo: $what, $((SECONDS - began)) s so far"
		done
	} >&2 &
	note=$!
	"$@" >"$log" 2>&1 || code=$?
	kill "$note"
	wait "$note" 2>/dev/null || true
	note=
	if [ $code != 0 ]; then
		cat "$log" >&2
		echo "demo: $what failed; the output of $* is above" >&2
		exit $code
	fi
}

scripts/setup.sh runtimes engines image
quietly "building touchstone" make --no-print-directory build
path=$(scripts/runtimes.sh --cached runsc youki crun containerd crio)
export PATH="${path:+$path:}$PATH"

run() {
	printf '$ touchstone %s\n' "$*"
	bin/touchstone "$@"
}
answer=()
if [ ! -t 0 ] || [ -n "${DEMO_YES:-}${CI:-}" ]; then
	answer=(--yes)
fi
code=0
run setup "${answer[@]}" runsc || code=$?
case $code in
0) ;;
130) exit 130 ;;
*) echo "demo: the measurement goes on without a current gVisor" >&2 ;;
esac

run targets --managed || [ $? = 5 ]
code=0
run benchmark --managed -f examples/demo.yaml -d "$out" "$@" || code=$?
if [ -e "$out/report.html" ]; then
	printf 'The report, with the charts: file://%s\n' "$(cd "$out" && pwd)/report.html"
fi
if [ $code != 0 ]; then
	echo "demo: touchstone benchmark ended with exit code $code (3: some trials failed; bin/touchstone --help lists all)" >&2
fi
exit $code
