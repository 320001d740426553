#!/usr/bin/env bash
# Repeats the four studies with short parameters on this machine, and writes a page of each. It must run as root. Arguments name some
# of the studies: scripts/reproductions.sh espe sateri. OUT is the folder for the pages (default out/reproductions).
#
# REPRODUCE_TARGETS selects targets of the studies, as in REPRODUCE_TARGETS=docker/runc, and REPRODUCE_TABLE one table of each: 1 or "text 5.8".
# The page of one table stays in out/reproductions.
#
# A page has the date, the host, the claims with their verdicts, the tables and the figures. The results of an interrupted script stay in
# out/reproductions, and the next call continues. Remove that folder to measure anew.
set -euo pipefail
cd "$(dirname "$0")/.."
work=out/reproductions
pages=${OUT:-$work}

[ "$(id -u)" = 0 ] || { echo "reproductions: the engines need root" >&2 && exit 1; }
[ $# != 0 ] || set -- espe nishimura wang sateri

make --no-print-directory build
path=$(scripts/runtimes.sh --cached runsc crun containerd crio)
export PATH="${path:+$path:}$PATH"
mkdir -p "$pages"
worst=0
for study in "$@"; do
	code=0
	bin/touchstone reproduce "$study" --quick --managed --wait -d "$work/$study" \
		${REPRODUCE_TARGETS:+--targets "$REPRODUCE_TARGETS"} ${REPRODUCE_TABLE:+--table "$REPRODUCE_TABLE"} || code=$?
	case $code in
	0 | 3 | 5) ;; # 3: some trials failed; 5: no target of the study is available. The page has the reasons.
	*) exit "$code" ;;
	esac
	[ $code = 0 ] || worst=$code
	[ -z "${REPRODUCE_TABLE:-}" ] || continue
	# The page stands alone, so that it can be sent without the larger reports of its runs.
	sed -E 's|<a href="report-[^"]*">([^<]*)</a>|\1|g' "$work/$study/reproduction-$study.html" >"$pages/$study.html"
done
echo "reproductions: the pages are in $pages" >&2
exit "$worst"
