#!/usr/bin/env bash
# Installs missing programs and libraries for building and running Touchstone:
#
#   scripts/setup.sh build       a C compiler and the kernel's headers, for the probe
#   scripts/setup.sh cross       cross compilers, for the probe of the other architectures
#   scripts/setup.sh bpf         clang 14, for the programs of the tracer
#   scripts/setup.sh runtimes    runc and crun
#   scripts/setup.sh engines     containerd, docker.io and podman, and programs that they and CRI-O call
#   scripts/setup.sh image       tools to build the workload image: mmdebstrap, the keys of Debian
#   scripts/setup.sh lab         tools for the virtual machines of the tests: mke2fs
#   scripts/setup.sh youki       tools to build youki: cargo, libseccomp
#   scripts/setup.sh crun        tools to build a newer crun: a C compiler, make, libraries
#   scripts/setup.sh tests       programs that tests and scripts call: strace, jq, chromium
#   scripts/setup.sh crio        tools to build CRI-O: a C compiler, libseccomp
#
# It checks for programs and not for packages, so it keeps programs from other sources. It needs root and apt-get only if
# something is missing. A missing compiler is an error. If a runtime or an engine is not available, the script prints a
# message and continues. It removes no package and starts no daemon (but Debian's packages start their daemons at the next boot).
set -euo pipefail
export LC_ALL=C DEBIAN_FRONTEND=noninteractive PATH="$PATH:/usr/local/sbin:/usr/sbin:/sbin"

missing=()

# want PACKAGE CHECK...: PACKAGE is missing if the check fails.
want() {
	local package=$1
	shift
	"$@" >/dev/null 2>&1 && return
	case " ${missing[*]} " in
	*" $package "*) ;;
	*) missing+=("$package") ;;
	esac
}

headers() { echo '#include <linux/types.h>' | "${CC:-gcc}" -E -; }
libc() { echo 'int main(void) { return 0; }' | "${CC:-gcc}" -x c -o /dev/null -; }

# want_compiler: adds the packages for building a C program.
want_compiler() {
	want gcc "${CC:-gcc}" --version
	want libc6-dev libc
}

# want_libraries NAME...: adds Debian's package NAME-dev for each library that pkg-config does not find.
want_libraries() {
	local name
	want pkg-config pkg-config --version
	for name; do
		want "$name-dev" pkg-config --exists "$name"
	done
}

# new_cargo: succeeds if cargo can build youki and its dependencies.
new_cargo() {
	local version
	version=$(cargo --version 2>/dev/null) || return
	version=${version#cargo }
	[ "$(printf '1.88\n%s\n' "${version%% *}" | sort -V | head -n 1)" = 1.88 ]
}

for what; do
	case $what in
	build)
		want_compiler
		want linux-libc-dev headers
		;;
	cross)
		case $(uname -m) in
		x86_64) others="aarch64:arm64 riscv64:riscv64" ;;
		aarch64) others="x86-64:amd64 riscv64:riscv64" ;;
		*) others="x86-64:amd64 aarch64:arm64" ;;
		esac
		for other in $others; do
			cpu=${other%:*}
			want "gcc-$cpu-linux-gnu" "${cpu/-/_}-linux-gnu-gcc" --version
			want "linux-libc-dev-${other#*:}-cross" test -d "/usr/${cpu/-/_}-linux-gnu/include/linux"
			want "libc6-dev-${other#*:}-cross" test -e "/usr/${cpu/-/_}-linux-gnu/include/math.h"
		done
		;;
	bpf)
		# Another compiler gives other bytes, so no other is installed.
		if grep -q '^VERSION_CODENAME=bookworm$' /etc/os-release; then
			want clang-14 command -v clang-14
			want llvm-14 command -v llvm-strip-14
		else
			echo "setup: the programs of the tracer are not built again: their compiler is clang 14 of Debian 12" >&2
		fi
		;;
	runtimes)
		want runc command -v runc
		want crun command -v crun
		;;
	engines)
		want containerd command -v containerd
		want docker.io command -v dockerd
		want podman command -v podman
		want conmon command -v conmon
		want containernetworking-plugins test -x /usr/lib/cni/bridge -o -x /opt/cni/bin/bridge
		want iptables command -v iptables
		want iproute2 command -v ip
		;;
	image)
		want mmdebstrap command -v mmdebstrap
		want debian-archive-keyring test -e /usr/share/keyrings/debian-archive-keyring.gpg -o -e /usr/share/keyrings/debian-archive-keyring.pgp
		;;
	tests)
		want strace command -v strace
		want jq command -v jq
		want chromium command -v chromium
		;;
	lab)
		want e2fsprogs command -v mke2fs
		;;
	crun)
		want_compiler
		want make make --version
		want_libraries libcap libseccomp
		;;
	crio)
		want_compiler
		want_libraries libseccomp
		;;
	youki)
		want_libraries libseccomp
		# cargo-web is a newer cargo, which Debian uses to build browsers.
		if ! new_cargo; then
			if command -v rustup >/dev/null || command -v cargo >/dev/null; then
				echo "setup: youki needs cargo 1.88 or later, but this is $(cargo --version 2>&1 | head -n 1); it is not replaced" >&2
			else
				missing+=(cargo-web)
			fi
		fi
		;;
	*)
		echo "setup: unknown set $what; the sets are build, cross, bpf, runtimes, gvisor, engines, image, lab, youki, crun, crio" >&2
		exit 2
		;;
	esac
done
[ ${#missing[@]} -gt 0 ] || exit 0

# cannot REASON: prints the missing packages, and fails if one is needed to compile.
cannot() {
	echo "setup: missing: ${missing[*]}; $1" >&2
	case " ${missing[*]}" in
	*" gcc"* | *" linux-libc-dev"* | *" libc6-dev"*) exit 1 ;;
	*) exit 0 ;;
	esac
}
command -v apt-get >/dev/null || cannot "apt-get does not exist: install the equivalents of these Debian packages"
[ "$(id -u)" = 0 ] || cannot "the installation needs root: apt-get install ${missing[*]}"

log=$(mktemp) policy=''
trap 'rm -f "$log" ${policy:+"$policy"}' EXIT
quietly() {
	"$@" >"$log" 2>&1 || {
		cat "$log" >&2
		echo "setup: $* failed; its output is above" >&2
		return 1
	}
}
apt() { quietly apt-get -q -y -o DPkg::Lock::Timeout=300 "$@"; }

echo "setup: installing ${missing[*]} with apt-get"
# Installed packages run this file to check whether they may start a daemon; 101 means no.
if [ ! -e /usr/sbin/policy-rc.d ]; then
	policy=/usr/sbin/policy-rc.d
	printf '#!/bin/sh\nexit 101\n' >"$policy"
	chmod 0755 "$policy"
fi
# Other package sources of the system may be broken. That matters only if a wanted package is not available.
apt update || echo "setup: continuing with the existing package lists" >&2
if ! apt install --no-remove --no-install-recommends "${missing[@]}"; then
	# An unavailable package must not prevent the installation of the others.
	failed=()
	for package in "${missing[@]}"; do
		apt install --no-remove --no-install-recommends "$package" || failed+=("$package")
	done
	missing=("${failed[@]}")
	[ ${#missing[@]} -eq 0 ] || cannot "apt-get cannot install them; its output is above"
fi
