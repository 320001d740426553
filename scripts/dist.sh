#!/usr/bin/env bash
# Builds the files of a release in dist/, for one or several architectures (amd64, arm64, riscv64). `make dist` calls it.
#
#   VERSION=v0.1.0 scripts/dist.sh amd64
#
# Each architecture gets an archive, a deb, an rpm and a bill of materials (SPDX). One container image has all architectures (scripts/container).
# SHA256SUMS has the digests. With RELEASE_KEY, the file of a private SSH key, it is signed too. Equal commits, versions and versions of Go give equal
# bytes: the build depends on no clock, path, user or locale. The times in all files are the time of the commit, or SOURCE_DATE_EPOCH.
#
# It needs Go, git, make, GNU tar and gzip. It does not need root, and builds nfpm once (scripts/tools.sh).
set -euo pipefail
cd "$(dirname "$0")/.."
umask 022
export LC_ALL=C TZ=UTC

version=${VERSION:?must be set, as make dist does}
[ $# -gt 0 ] || set -- amd64 arm64 riscv64
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git -c safe.directory='*' log -1 --format=%ct)}
revision=$(git -c safe.directory='*' rev-parse HEAD)
# Settings of the builder must not change the program.
export SOURCE_DATE_EPOCH CGO_ENABLED=0 GOFLAGS=-trimpath GOAMD64=v1 GOARM64=v8.0 GORISCV64=rva20u64 GOEXPERIMENT=

# A version of a package begins with a digit, and a release follows its candidates: v1.0.0-rc1 is 1.0.0~rc1. A commit after a tag follows the
# tag, and a commit without a tag precedes every release.
case $version in
v[0-9]*-*-g*) PACKAGE_VERSION=$(sed 's/^v//; s/-\([0-9]*\)-g/+\1.g/; s/-dirty/.dirty/; s/-/~/g' <<<"$version") ;;
v[0-9]*) PACKAGE_VERSION=$(sed 's/^v//; s/-dirty/+dirty/; s/-/~/g' <<<"$version") ;;
*) PACKAGE_VERSION=0~$(date -d "@$SOURCE_DATE_EPOCH" +%Y%m%d%H%M%S).${version//-/.} ;;
esac
export PACKAGE_VERSION

nfpm=$(scripts/tools.sh nfpm)/nfpm
out=$PWD/dist package=$PWD/scripts/package
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
rm -rf "$out"
mkdir "$out"

# The programs run on this machine, also if the files are for another architecture.
native() { env -u GOARCH -u GOOS go run "$@"; }

# licences PROGRAM prints the licences of Go and of all modules in the program. A copy of the program must carry them.
licences() {
	local modules module dir
	modules=$(go version -m "$1" | awk '$1 == "dep" { print $2 }')
	{
		echo "Go $(go env GOROOT)"
		# shellcheck disable=SC2086 # one word for each module
		go list -m -f '{{.Path}} {{.Dir}}' $modules
	} | while read -r module dir; do
		printf '==== %s ====\n\n' "$module"
		find "$dir" -maxdepth 1 -type f \( -iname 'licen[cs]e*' -o -iname 'copying*' -o -iname 'notice*' -o -iname 'copyright*' \) | sort | xargs -r cat -- | grep '' || {
			echo "dist: $module in $dir has no licence" >&2
			return 1
		}
		echo
	done
}

native ./scripts/manual -version "$version" -date "$SOURCE_DATE_EPOCH" "$work/manual"
gzip -9n "$work"/manual/man/*.1

for arch; do
	name=touchstone-$version-linux-$arch
	stage=$work/$name
	mkdir "$stage"
	echo "dist: $name"
	GOARCH=$arch GOOS=linux make --no-print-directory -s build VERSION="$version" VCS=-buildvcs=false BIN="$stage/touchstone"
	native ./scripts/sbom -version "$version" -date "$SOURCE_DATE_EPOCH" "$stage/touchstone" >"$stage/touchstone.spdx.json"
	licences "$stage/touchstone" >"$stage/THIRD-PARTY-LICENSES"
	cp -r README.md LICENSE CHANGELOG.md "$work"/manual/* "$stage"
	chmod -R u=rwX,go=rX "$stage" # the modes of a clone depend on the umask
	find "$stage" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +
	tar -C "$work" --sort=name --owner=0 --group=0 --numeric-owner --format=gnu -c "$name" | gzip -9n >"$out/$name.tar.gz"
	cp "$stage/touchstone.spdx.json" "$out/$name.spdx.json"
	mkdir -p "$work/container/$arch"
	cp "$stage"/{touchstone,LICENSE,THIRD-PARTY-LICENSES,touchstone.spdx.json} "$work/container/$arch"

	cp "$package"/*.sh "$stage"
	gzip -9n "$stage/CHANGELOG.md" "$stage/THIRD-PARTY-LICENSES"
	find "$stage" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +
	for packager in deb rpm; do
		(cd "$stage" && ARCH=$arch "$nfpm" package --config "$package/nfpm.yaml" --packager "$packager" --target "$out/" >/dev/null)
	done
	rm -rf "$stage"
done

digest=$(native ./scripts/container -version "$version" -revision "$revision" -date "$SOURCE_DATE_EPOCH" build "$work/container" "$out/touchstone-$version-oci.tar")
echo "dist: the container image is $digest"

cd "$out"
sha256sum -- * >"$work/SHA256SUMS"
mv "$work/SHA256SUMS" .
if [ -n "${RELEASE_KEY:-}" ]; then
	ssh-keygen -q -Y sign -f "$RELEASE_KEY" -n touchstone SHA256SUMS
else
	echo "dist: the files are not signed: RELEASE_KEY names no key"
fi
echo "dist: $(find . -type f | wc -l) files of $version in $out"
