#!/bin/sh
# Compares two builds of a runtime, or two sides of results, in a job of continuous integration. It fetches and checks a release, executes `touchstone ab`
# or `touchstone compare`, and writes the report. action.yml calls it for GitHub, and templates/touchstone.yml contains it for GitLab, by `make gen`.
#
# The inputs are variables, which action.yml describes, so that no name of a branch or of a file becomes a command. TOUCHSTONE_OUTPUT names the folder for
# the program and the report.
#
# The archive must have the digest of the input sha256, or a digest in SHA256SUMS with a signature by a key of TOUCHSTONE_SIGNERS. These come with this
# script. The digests of the server alone prove nothing, because a forger of the archive would replace both.
#
# The exit code is the exit code of the command, but TOUCHSTONE_WARNING after an inconclusive answer that is a warning, and 1 without the program.
set -euf

# The version of a release is the version of the action. scripts/release.sh checks it.
version=${TOUCHSTONE_INPUT_VERSION:-v0.1.0}
command=$TOUCHSTONE_INPUT_COMMAND
archive=
report=$TOUCHSTONE_OUTPUT/report
sudo=

fail() {
	echo "touchstone: $*" >&2
	exit 1
}

# fetch FILE fetches a file of the release.
fetch() {
	curl --fail --silent --show-error --location --retry 3 --output "$work/$1" "$TOUCHSTONE_INPUT_RELEASES/$version/$1" ||
		fail "$1 cannot be fetched: does $TOUCHSTONE_INPUT_RELEASES have the release $version?"
}

# digest prints the digest that the archive must have.
digest() {
	if [ -n "$TOUCHSTONE_INPUT_SHA256" ]; then
		echo "$TOUCHSTONE_INPUT_SHA256"
		return
	fi
	[ -n "$TOUCHSTONE_SIGNERS" ] || fail "the key of releases is missing: take a commit of a release, or give the digest of $archive as sha256"
	command -v ssh-keygen >/dev/null || fail "ssh-keygen is missing: install OpenSSH, or give the digest of $archive as sha256"
	fetch SHA256SUMS
	fetch SHA256SUMS.sig
	printf '%s\n' "$TOUCHSTONE_SIGNERS" >"$work/signers"
	ssh-keygen -q -Y verify -f "$work/signers" -I release -n touchstone -s "$work/SHA256SUMS.sig" <"$work/SHA256SUMS" >&2 ||
		fail "SHA256SUMS of release $version has no signature by a key of releases"
	awk -v file="$archive" '$2 == file { print $1 }' "$work/SHA256SUMS"
}

# install fetches and checks the program.
install() {
	case $(uname -m) in
	x86_64) archive=touchstone-$version-linux-amd64.tar.gz ;;
	aarch64) archive=touchstone-$version-linux-arm64.tar.gz ;;
	riscv64) archive=touchstone-$version-linux-riscv64.tar.gz ;;
	*) fail "no release is for the architecture $(uname -m)" ;;
	esac
	want=$(digest)
	fetch "$archive"
	found=$(sha256sum "$work/$archive")
	[ "${found%% *}" = "$want" ] || fail "$archive has the digest ${found%% *}, and must have ${want:-one in SHA256SUMS}"
	tar -xzf "$work/$archive" -C "$work" "${archive%.tar.gz}/touchstone"
	mv "$work/${archive%.tar.gz}/touchstone" "$work/touchstone"
}

# compare executes the command in a private folder, because touchstone refuses a folder that other users can change. It returns the exit code.
compare() {
	mkdir "$work/report"
	# shellcheck disable=SC2086 # one word for each argument; with set -f no word is a pattern of files
	set -- "$command" $TOUCHSTONE_INPUT_ARGS --a "$TOUCHSTONE_INPUT_BASELINE" --b "$TOUCHSTONE_INPUT_CANDIDATE" \
		--inconclusive "$TOUCHSTONE_INPUT_INCONCLUSIVE" -o junit -O "$work/report/junit.xml" --github-summary
	[ "$command" = compare ] || set -- "$@" -d "$work/report"
	# A shell executes a trap only after its program in the foreground, so the program of a cancelled job would not end. It has a session of its own: a
	# runner of GitLab signals the whole process group, and a second signal would end the program's clean-up.
	setsid $sudo env GITHUB_STEP_SUMMARY="$work/report/comment.md" "$work/touchstone" "$@" &
	result=127
	signal=yes
	while [ -n "$signal" ]; do # a signal ends a wait before the program ends
		signal= status=0
		wait "$!" || status=$?
		[ "$status" = 127 ] || result=$status # with 127 an earlier wait has the exit code
	done
	[ -z "$sudo" ] || sudo chown -R "$(id -u):$(id -g)" "$work"
	return "$result"
}

# publish CODE writes the program, the report, the summary and the outputs.
publish() {
	mkdir -p "$report"
	cp -R "$work/report/." "$report"
	cp "$work/touchstone" "$TOUCHSTONE_OUTPUT/touchstone"
	[ -s "$report/comment.md" ] ||
		printf '### Touchstone: no result\n\nThe command ended with exit code %s. The log of the job has the reason.\n' "$1" >"$report/comment.md"
	cat "$report/comment.md"
	[ "$TOUCHSTONE_INPUT_SUMMARY" != true ] || cat "$report/comment.md" >>"$GITHUB_STEP_SUMMARY"
	case $1 in
	0) verdict=not-worse ;;
	4) verdict=worse ;;
	6) verdict=inconclusive ;;
	*) verdict=error ;;
	esac
	[ -z "${GITHUB_OUTPUT:-}" ] ||
		printf '%s\n' "verdict=$verdict" "report=$report" "program=$TOUCHSTONE_OUTPUT/touchstone" >>"$GITHUB_OUTPUT"
}

# The folder may have the program and the report of an earlier job, and a job without a program must not show them.
rm -rf "$report" "$TOUCHSTONE_OUTPUT/touchstone"
case $command in ab | compare) ;; *) fail "the input command is none of ab and compare" ;; esac
case $TOUCHSTONE_INPUT_INCONCLUSIVE in fail | warn) ;; *) fail "the input inconclusive is none of fail and warn" ;; esac
case $version in *[!0-9A-Za-z.-]*) fail "the input version is no name of a release, such as v0.1.0" ;; esac
case $TOUCHSTONE_INPUT_SHA256 in *[!0-9a-f]*) fail "the input sha256 is no digest of hexadecimal digits in lower case" ;; esac
case $TOUCHSTONE_INPUT_RELEASES in *[[:space:]]*) fail "the input releases is no address" ;; esac
[ "$TOUCHSTONE_INPUT_SUDO" != true ] || sudo=sudo

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'signal=yes; [ -n "${!:-}" ] || exit 130; kill -TERM "$!" 2>/dev/null || true' HUP INT TERM
install
code=0
compare || code=$?
publish "$code"
if [ "$code $TOUCHSTONE_INPUT_INCONCLUSIVE" = "6 warn" ]; then
	code=$TOUCHSTONE_WARNING
	[ -z "${GITHUB_OUTPUT:-}" ] || echo "::warning::The comparison is inconclusive."
fi
exit "$code"
