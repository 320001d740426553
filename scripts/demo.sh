#!/usr/bin/env bash
# Measures the runtimes of this machine, after the whole set-up that it needs; this is `make
# demo`. It must run as root. The folder for the results is out, unless OUT is set.
#
# The runtimes and engines are Debian's (runc, crun, runsc, containerd, Docker, Podman), and those that
# make test has built before: it builds none itself, which would take longer than the measuring. The
# daemons are private ones: none of the system is started or used.
set -euo pipefail
cd "$(dirname "$0")/.."
out=${OUT:-out}

if [ "$(id -u)" != 0 ]; then
	echo "demo: the runtimes' own cost is measured as root: sudo make demo" >&2
	echo "demo: without root, bin/touchstone benchmark measures rootless containers" >&2
	exit 1
fi

scripts/setup.sh build runtimes gvisor engines image
make --no-print-directory build
path=$(scripts/tools.sh --cached runsc youki crun containerd containerd-shim-runsc-v1 crio)
export PATH="${path:+$path:}$PATH"

run() {
	printf '\n$ touchstone %s\n' "$*"
	bin/touchstone "$@"
}
run targets --managed || [ $? = 5 ]
code=0
run benchmark --managed -f examples/demo.yaml -d "$out" || code=$?
if [ -e "$out/report.html" ]; then
	printf '\nThe report, with the charts: file://%s\n' "$(cd "$out" && pwd)/report.html"
fi
if [ $code != 0 ]; then
	echo "demo: touchstone benchmark ended with exit code $code (3: some trials failed; bin/touchstone --help lists all)" >&2
fi
exit $code
