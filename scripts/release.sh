#!/usr/bin/env bash
# Builds and checks the release of the tag at HEAD, in dist/, and prints its notes. `make release` calls it. Arguments are architectures; all without.
#
#   git tag -s v0.1.0 && RELEASE_KEY=~/.ssh/release scripts/release.sh
#   PUBLISH=1 RELEASE_REPOSITORY=ghcr.io/OWNER/touchstone scripts/release.sh     # also publishes the image, and the files with gh, GitHub's program
#
# The credentials of the registry come from docker login, podman login or, for ghcr.io, from GITHUB_TOKEN.
#
# It refuses a tag that is no version, a tree with changes, a changelog without a section of the version, an action or a component with another
# version or other keys, and a key that is not in .github/allowed_signers. docs/releases.md has the tests that must pass before.
set -euo pipefail
cd "$(dirname "$0")/.."

refuse() {
	echo "release: $*" >&2
	exit 1
}
[ -z "$(git status --porcelain)" ] || refuse "the tree has changes: commit or stash them"
tag=$(git tag --points-at HEAD --list 'v*')
[[ $tag =~ ^v[0-9]+\.[0-9]+\.[0-9]+(-rc\.?[0-9]+)?$ ]] || refuse "HEAD must have exactly one tag that is a version, such as v0.1.0: it has ${tag:-none}"
signers=.github/allowed_signers
[ -e "$signers" ] || refuse "$signers does not exist: add the line \"release namespaces=\\\"touchstone\\\" PUBLIC-KEY\" of the key of releases"
[ -e "${RELEASE_KEY:?names no key: set it to the file of the private key}" ] || refuse "$RELEASE_KEY does not exist"
[ -z "${PUBLISH:-}" ] || [ -n "${RELEASE_REPOSITORY:-}" ] || refuse "RELEASE_REPOSITORY names no repository for the image, such as ghcr.io/OWNER/touchstone"

notes=$(awk -v heading="## [${tag#v}]" 'index($0, "## [") == 1 { inside = index($0, heading) == 1; next } inside' CHANGELOG.md)
[ -n "$notes" ] || refuse "CHANGELOG.md has no section ## [${tag#v}]"

# The action has the script and the keys, and the component a copy of both.
component=templates/touchstone.yml
for file in scripts/ci.sh "$component"; do
	grep -q "INPUT_VERSION:-$tag}" "$file" || refuse "$file has another version: write $tag into scripts/ci.sh, and call make gen"
done
while read -r key; do
	grep -qF -- "$key" "$component" || refuse "$component lacks a key of $signers: call make gen"
done <"$signers"

make --no-print-directory dist VERSION="$tag" ARGS="$*"
(cd dist && sha256sum --check --quiet SHA256SUMS)
ssh-keygen -Y verify -f "$signers" -I release -n touchstone -s dist/SHA256SUMS.sig <dist/SHA256SUMS >/dev/null ||
	refuse "the signature is not of a key in $signers"
echo "release: $tag is built, checked and signed; its notes:"
printf '%s\n' "$notes"
[ -n "${PUBLISH:-}" ] || exit 0

# The image precedes the release, whose notes name it. Another attempt finds a published image and goes on.
layout=$(mktemp -d)
trap 'rm -rf "$layout"' EXIT
tar -C "$layout" -xf "dist/touchstone-$tag-oci.tar"
image=$(go run ./scripts/container push "$layout" "$RELEASE_REPOSITORY")
echo "release: the container image is $image"
gh release create "$tag" --verify-tag --title "Touchstone ${tag#v}" --notes "$notes

Container image: \`$image\`" dist/*
