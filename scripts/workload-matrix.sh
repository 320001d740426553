#!/usr/bin/env bash
# Runs the benchmarks of a matrix in docs/benchmarks/matrix.md on its targets, and writes the matrix from the results. The first argument
# is the kind of the matrix: programs (the default; the performance, limits and latency suites), containers (density, isolation,
# footprint and portability) or guests (all suites, on runtimes with virtual machines, in a machine of the lab). A next argument
# such as performance.cpu.zstd, or several names with commas, selects benchmarks; the others keep their rows. Further arguments go
# to touchstone benchmark (say, --runs 5), except with guests.
# It needs root and the runtimes that make test installs, and takes some minutes. guests needs the same as make test-lab, TOUCHSTONE_KATA, and an hour or two.
set -euo pipefail
cd "$(dirname "$0")/.."

[ "$(id -u)" = 0 ] || { echo "workload-matrix: the runtimes need root" >&2 && exit 1; }
[ -z "$(git status --porcelain --untracked-files=no)" ] || { echo "workload-matrix: commit first: the matrix names the version of Touchstone" >&2 && exit 1; }
kind=programs filter=performance,limits,latency
targets=native,oci/runc,oci/crun,oci/runsc,containerd/runc,containerd/crun,containerd/runsc
case ${1-} in
programs) shift ;;
containers)
	kind=containers filter=density,isolation,footprint,portability
	targets+=,docker/runc,podman/crun
	shift
	;;
guests)
	kind=guests filter=operations,scalability,performance,limits,density,isolation,footprint,portability,latency
	shift
	;;
esac
part=
if [ $# -gt 0 ] && [ "${1#-}" = "$1" ]; then
	filter=$1 part=-part
	shift
fi
update() { # writes the matrix from the exports of runs, with a pattern of their files
	go test ./internal/docgen -count=1 -run TestMatrixIsFresh -update -kind "$kind" -from "$1" ${part:+"$part"}
}
if [ "$kind" = guests ]; then
	[ $# = 0 ] || { echo "workload-matrix: the plan of guests takes no arguments: $*" >&2 && exit 2; }
	[ -n "${TOUCHSTONE_KATA:-}" ] || { echo "workload-matrix: guests needs TOUCHSTONE_KATA: see CONTRIBUTING.md" >&2 && exit 1; }
	out=$(mktemp -d)
	trap 'rm -rf "$out"' EXIT
	code=0
	LAB_OUT=$out LAB_GUESTS=$filter scripts/test-lab.sh -run '^TestGuests$' -timeout 8h || code=$?
	[ "$code" = 0 ] || part=-part # a machine was lost; the others have results
	update "$out/guests-*/guests.json"
	exit "$code"
fi
make --no-print-directory build
path=$(scripts/runtimes.sh --cached runsc crun containerd)
export PATH="${path:+$path:}$PATH"
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT

code=0
bin/touchstone benchmark --managed --wait -t "$targets" --filter "$filter" --runs 2 --warmup 0 -d "$out" "$@" || code=$?
[ "$code" = 0 ] || [ "$code" = 3 ] || exit "$code" # 3: some trials failed, and the matrix has the reasons
bin/touchstone export -d "$out" >"$out/run.json"
update "$out/run.json"
