#!/usr/bin/env bash
# Runs every benchmark of the performance and limits suites on the targets of the matrix of docs/benchmarks.md, and
# writes that matrix anew from what became of them. As root, after make test has built
# the tools; it takes some minutes. Arguments go to touchstone benchmark (say, --runs 5).
set -euo pipefail
cd "$(dirname "$0")/.."

[ "$(id -u)" = 0 ] || { echo "workload-matrix: the runtimes need root" >&2 && exit 1; }
[ -z "$(git status --porcelain --untracked-files=no)" ] || { echo "workload-matrix: commit first: the matrix names the version that made it" >&2 && exit 1; }
make --no-print-directory build
path=$(scripts/tools.sh --cached runsc crun containerd containerd-shim-runsc-v1)
export PATH="${path:+$path:}$PATH"
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT

targets=native,oci/runc,oci/crun,oci/runsc,containerd/runc,containerd/crun,containerd/runsc
code=0
bin/touchstone benchmark --managed -t "$targets" --filter performance,limits --runs 2 --warmup 0 -d "$out" "$@" || code=$?
[ "$code" = 0 ] || [ "$code" = 3 ] || exit "$code" # 3: what failed has its reason in the matrix
bin/touchstone export -d "$out" >"$out/run.json"
go test ./internal/docgen -count=1 -run TestMatrixIsFresh -update -from "$out/run.json"
