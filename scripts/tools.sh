#!/usr/bin/env bash
# Builds the programs of developers. It builds each once, from a pinned version of a Go module or an npm package, and prints their folders,
# joined by ":", for PATH:
#
#   PATH=$(scripts/tools.sh crictl nfpm):$PATH
#   scripts/tools.sh --cached kube    # fails if one is not built, and builds nothing
#
#   crictl           with critest
#   golangci-lint    for make lint
#   nfpm             packs deb and rpm packages, for make dist
#   axe-core         a script that checks whether pages are accessible, as npm packs it
#   kube             Kubernetes and etcd in one program, and cluster-host, for scripts/cluster.sh; takes ten minutes on two CPUs
#   kwok             fake nodes of a cluster, with its folder of stages
#
# They are stored in ${XDG_CACHE_HOME:-~/.cache}/touchstone/tools. Progress goes to standard error. scripts/runtimes.sh installs runtimes and
# engines.
set -euo pipefail
export LC_ALL=C

checkout=$(cd "$(dirname "$0")/.." && pwd)
root=${XDG_CACHE_HOME:-${HOME:?must be set, or XDG_CACHE_HOME}/.cache}/touchstone/tools

version_of() {
	case $1 in
	crictl) echo v1.34.0 ;;
	golangci-lint) echo v2.12.0 ;;
	nfpm) echo v2.43.4 ;;
	axe-core) echo 4.14.1 ;;
	kube) echo "$(kubernetes)-$(cd "$checkout" && find test/kube test/cluster/host -type f ! -name '*_test.go' | sort | xargs cat | sha256sum | cut -c 1-8)" ;;
	kwok) echo v0.8.0 ;;
	*)
		echo "tools: unknown tool $1; the tools are crictl, golangci-lint, nfpm, axe-core, kube, kwok" >&2
		exit 2
		;;
	esac
}

# kubernetes prints the version of Kubernetes that the module test/kube requires.
kubernetes() { awk '$1 == "k8s.io/kubernetes" { print $2; exit }' "$checkout/test/kube/go.mod"; }

# build NAME VERSION DIR writes the programs to DIR. DIR.* are temporary directories of the build.
build() {
	local version=$2 bin=$3 source=$3.source
	export GOBIN=$bin GOFLAGS=-buildvcs=false GOWORK=off
	cd "$bin"
	case $1 in
	crictl)
		go_source sigs.k8s.io/cri-tools "$version" "$source" h1:KqL9EJ+WgHtz1HR1exezm91n+o8O2uMLs/eHzHJHAWw=
		cd "$source"
		local flags="-s -w -X sigs.k8s.io/cri-tools/pkg/version.Version=${version#v}"
		CGO_ENABLED=0 go install -trimpath -ldflags "$flags" ./cmd/crictl
		# critest is a test binary.
		CGO_ENABLED=0 go test -c -trimpath -ldflags "$flags" -o "$bin/critest" ./cmd/critest
		;;
	golangci-lint)
		CGO_ENABLED=0 go install -trimpath -ldflags "-s -w" "github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$version"
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
	kube)
		cd "$checkout/test/kube"
		CGO_ENABLED=0 go build -trimpath -ldflags "-s -w -X k8s.io/component-base/version.gitVersion=$(kubernetes)" -o "$bin/kube" .
		cd "$checkout"
		CGO_ENABLED=0 go build -trimpath -ldflags "-s -w" -o "$bin/cluster-host" ./test/cluster/host
		;;
	kwok)
		CGO_ENABLED=0 go install -trimpath -ldflags "-s -w" "sigs.k8s.io/kwok/cmd/kwok@$version"
		# The program has no stages of its own: they are files of its module.
		source=$(go mod download -json "sigs.k8s.io/kwok@$version" | awk -F '"' '$2 == "Dir" { print $4 }')
		mkdir "$bin/stages"
		cp "$source"/kustomize/stage/{node/fast/node-initialize,node/heartbeat-with-lease/node-*,pod/fast/pod-*}.yaml "$bin/stages"
		;;
	esac
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
		[ -z "$cached" ] || {
			echo "tools: $name $version is not built" >&2
			exit 1
		}
		mkdir -p "$root"
		exec 9>"$root/.$name.lock"
		flock 9 # another make may be building the same
		[ -d "$dir" ] || install "$name" "$version" "$dir"
		exec 9>&-
	fi
	path=$path${path:+:}$dir
done
printf '%s\n' "$path"
