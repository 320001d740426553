#!/usr/bin/env bash
# Builds programs that are too old or missing in Debian 12. It builds each once, from a pinned version of a Go module, a crate or a source
# package of Debian, and prints their folders, joined by ":", for PATH:
#
#   PATH=$(scripts/tools.sh runsc youki):$PATH
#   scripts/tools.sh --cached runsc youki   # prints only existing folders, and builds nothing
#
#   runsc youki crun           runtimes; Debian's crun is too old for the engines below
#   runsc-amd64 runsc-arm64    runsc for a machine with that architecture
#   containerd                 with its shim for runc, ctr and containerd-stress
#   containerd1.7              the same of the version before
#   containerd-shim-runsc-v1   containerd's shim for gVisor
#   crio                       with pinns; conmon is Debian's
#   crictl                     with critest
#   golangci-lint              for make lint
#   nfpm                       packs deb and rpm packages, for make dist
#   axe-core                   a script that checks whether pages are accessible, as npm packs it
#
# They are stored in ${XDG_CACHE_HOME:-~/.cache}/touchstone/tools. Progress goes to standard error.
# scripts/setup.sh installs the tools for the builds.
set -euo pipefail
export LC_ALL=C

root=${XDG_CACHE_HOME:-${HOME:?must be set, or XDG_CACHE_HOME}/.cache}/touchstone/tools

# gVisor's shim for containerd with its own main package. Its go.mod pins gVisor's version.
runsc_shim=$(cd "$(dirname "$0")/tools/runsc-shim" && pwd)

version_of() {
	case $1 in
	runsc | runsc-amd64 | runsc-arm64) awk '$1 == "gvisor.dev/gvisor" { print $2 }' "$runsc_shim/go.mod" ;;
	youki) echo 0.7.0 ;;
	crun) echo 1.21 ;;
	containerd) echo v2.4.2 ;;
	containerd1.7) echo v1.7.35 ;;
	containerd-shim-runsc-v1) echo "$(version_of runsc)-$(sha256sum <"$runsc_shim/main.go" | cut -c 1-8)" ;;
	crio) echo v1.34.0 ;;
	crictl) echo v1.34.0 ;;
	golangci-lint) echo v2.12.0 ;;
	nfpm) echo v2.43.4 ;;
	axe-core) echo 4.14.1 ;;
	*)
		echo "tools: unknown tool $1; the tools are runsc, runsc-amd64, runsc-arm64, youki, crun, containerd, containerd1.7," \
			"containerd-shim-runsc-v1, crio, crictl, golangci-lint, nfpm, axe-core" >&2
		exit 2
		;;
	esac
}

# build NAME VERSION DIR writes the programs to DIR. DIR.* are temporary directories of the build.
build() {
	local version=$2 bin=$3 source=$3.source
	export GOBIN=$bin GOFLAGS=-buildvcs=false GOWORK=off
	cd "$bin"
	case $1 in
	runsc)
		install_runsc "$version"
		;;
	runsc-*)
		# go install writes programs for another architecture only below GOPATH.
		GOMODCACHE=$(go env GOMODCACHE)
		export GOMODCACHE GOPATH=$bin.path GOARCH=${1#runsc-}
		unset GOBIN
		install_runsc "$version"
		find "$GOPATH/bin" -name runsc -exec mv {} "$bin" \;
		;;
	youki)
		# The default features lack cgroup v1.
		cargo install youki --version "$version" --locked --no-default-features \
			--features v1,v2,seccomp --root "$bin.root"
		mv "$bin.root/bin/youki" "$bin/youki"
		;;
	crun)
		debian_source "pool/main/c/crun/crun_$version.orig.tar.gz" "$source" \
			4bfb700e764a4804a4de3ecf07753f4c391005356d60356df65d80ae0914c486
		cd "$source"
		# configure requires Python, though only bindings need it.
		PYTHON=true ./configure --disable-systemd --disable-criu --enable-embedded-yajl --disable-dependency-tracking
		make -j "$(nproc)"
		strip -s -o "$bin/crun" crun
		;;
	containerd)
		go_source github.com/containerd/containerd/v2 "$version" "$source" \
			h1:p6Qg+xbEz8lvwdhHDx0U469xENvp4LgGBx+E7djXkGw=
		build_containerd "$source" "github.com/containerd/containerd/v2/version.Version=$version"
		;;
	containerd1.7)
		go_source github.com/containerd/containerd "$version" "$source" \
			h1:7AU2T1qI2OdNBmKkreWZ7kASHUNFItN5Hgejd9sY938=
		build_containerd "$source" "github.com/containerd/containerd/version.Version=$version"
		;;
	containerd-shim-runsc-v1)
		CGO_ENABLED=0 go -C "$runsc_shim" build -trimpath -ldflags "-s -w" -o "$bin/$1" .
		;;
	crio)
		go_source github.com/cri-o/cri-o "$version" "$source" h1:ux2URwAyENy5e5hD9Z95tshdfy98eqatZk0fxx3rhuk=
		cd "$source"
		go install -trimpath -ldflags "-s -w" -tags containers_image_openpgp,exclude_graphdriver_btrfs,seccomp ./cmd/crio
		"${CC:-gcc}" -std=c99 -Os -static -s -o "$bin/pinns" pinns/src/*.c
		;;
	crictl)
		go_source sigs.k8s.io/cri-tools "$version" "$source" h1:KqL9EJ+WgHtz1HR1exezm91n+o8O2uMLs/eHzHJHAWw=
		cd "$source"
		local flags="-s -w -X sigs.k8s.io/cri-tools/pkg/version.Version=${version#v}"
		CGO_ENABLED=0 go install -trimpath -ldflags "$flags" ./cmd/crictl
		# critest is a test binary.
		CGO_ENABLED=0 go test -c -trimpath -ldflags "$flags" -o "$bin/critest" ./cmd/critest
		;;
	golangci-lint)
		go install -trimpath "github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$version"
		;;
	nfpm)
		CGO_ENABLED=0 go install -trimpath -ldflags "-s -w" "github.com/goreleaser/nfpm/v2/cmd/nfpm@$version"
		;;
	axe-core)
		mkdir "$source"
		npm pack --silent --pack-destination "$source" "axe-core@$version"
		echo "e6b0ce02b84d892e2e33e403485e7f3d6c29e2be6df65daf44d89ba564139745 $source/axe-core-$version.tgz" | sha256sum --check --quiet
		tar -xf "$source/axe-core-$version.tgz" -C "$bin" --strip-components=1 package/axe.min.js
		;;
	esac
}

# install_runsc VERSION installs runsc to the directory in Go's environment.
install_runsc() {
	# The linker sets the version; otherwise runsc prints VERSION_MISSING.
	CGO_ENABLED=0 go install -trimpath \
		-ldflags "-s -w -X gvisor.dev/gvisor/runsc/version.version=$1" "gvisor.dev/gvisor/runsc@$1"
}

# build_containerd SOURCE VARIABLE builds any version of containerd. VARIABLE is the variable with the version, which the linker
# sets.
build_containerd() {
	cd "$1"
	# It panics unless it may open 100000 files. Root without CAP_SYS_RESOURCE may not.
	sed -i 's/uint64(100000)/uint64(0)/' cmd/containerd-stress/rlimit_unix.go
	CGO_ENABLED=0 go install -trimpath -ldflags "-s -w -X $2" \
		./cmd/{containerd,containerd-shim-runc-v2,containerd-stress,ctr}
}

# go_source MODULE VERSION DIR SUM writes the source of a Go module to DIR. Unlike with `go install PACKAGE@VERSION`, a module that is
# built there may exclude other modules, be patched, and be missing from the checksum database: go_source checks SUM, and the module's own
# go.sum has the checksums of its dependencies.
go_source() {
	local cached
	cached=$(GONOSUMDB=$1 go mod download -json "$1@$2" | awk -F '"' -v sum="$4" '
		$2 == "Error" { print >"/dev/stderr" }
		$2 == "Dir" { dir = $4 }
		$2 == "Sum" && $4 == sum { print dir }') || true
	[ -n "$cached" ] || {
		echo "$1@$2 does not have the checksum $4"
		return 1
	}
	cp -r "$cached" "$3"
	chmod -R u+w "$3"
}

# debian_source PATH DIR SHA256 extracts a tarball of Debian's archive to DIR, from apt-get's mirror.
debian_source() {
	local mirror
	mirror=$(apt-get indextargets --format '$(REPO_URI)' | grep -m 1 '/debian/$' || true)
	/usr/lib/apt/apt-helper download-file "${mirror:-http://deb.debian.org/debian/}$1" "$2.tar" "SHA256:$3"
	mkdir "$2"
	tar -xf "$2.tar" -C "$2" --strip-components=1
}

new='' pid='' # what the trap cleans up

# install NAME VERSION DIR builds in a temporary directory and renames it to DIR, so that DIR is complete or missing.
install() {
	local name=$1 version=$2 dir=$3 log began=$SECONDS
	new=$(mktemp -d "$root/.$name.XXXXXX")
	log=$new/log
	mkdir "$new/bin"
	echo "tools: building $name $version; this takes some minutes, but only once" >&2
	build "$name" "$version" "$new/bin" >"$log" 2>&1 &
	pid=$!
	trap 'kill "$pid" 2>/dev/null || true; rm -rf "$new"' EXIT
	while kill -0 "$pid" 2>/dev/null; do
		sleep 1
		[ $(((SECONDS - began) % 30)) -ne 0 ] || echo "tools: building $name, $((SECONDS - began)) s so far" >&2
	done
	wait "$pid" || {
		tail -n 40 "$log" >&2
		echo "tools: building $name $version failed; the end of its output is above" >&2
		exit 1
	}
	chmod 0755 "$new/bin" "$new/bin/"*
	mv -T "$new/bin" "$dir"
	rm -rf "$new"
	trap - EXIT
	echo "tools: built $name $version in $((SECONDS - began)) s" >&2
}

cached=
if [ "${1:-}" = --cached ]; then
	cached=1
	shift
fi
path=
for name; do
	version=$(version_of "$name")
	dir=$root/$name-$version
	if [ ! -d "$dir" ]; then
		[ -z "$cached" ] || continue
		mkdir -p "$root"
		exec 9>"$root/.lock"
		flock 9 # another make may be building the same
		[ -d "$dir" ] || install "$name" "$version" "$dir"
		exec 9>&-
	fi
	path=$path${path:+:}$dir
done
printf '%s\n' "$path"
