#!/bin/sh
# Builds the probe and linpack for the given architectures in Go's naming (default: the host's) to
# internal/image/probe/probe-ARCH and internal/image/debian/linpack/linpack-ARCH. The binary embeds these files. They are under version
# control, so that go install gets them too, with their record internal/image/programs.sum: the compiler for each architecture, and the
# checksums of sources and programs. `make probes` builds all and renews the record.
#
# The compiler is $CC_ARCH (such as CC_arm64), $CC for the host's architecture, gcc, or Debian's cross compiler. It must be
# gcc. The build is reproducible with the same compiler. PROBE_OUT is another output directory for both; it leaves the record as it is.
set -eu
export LC_ALL=C

limit=102400 # bytes: DESIGN.md allows less than 100 KiB
root=$(cd "$(dirname "$0")/.." && pwd)
out=${PROBE_OUT:-$root/internal/image/probe}
solver_out=${PROBE_OUT:-$root/internal/image/debian/linpack}

die() {
	echo "build-probe: $*" >&2
	exit 1
}

case $(uname -m) in
x86_64) host=amd64 ;;
aarch64) host=arm64 ;;
riscv64) host=riscv64 ;;
*) host=$(uname -m) ;;
esac

# The probe uses no C library (the reason is in probe/README.md). The file contains only code and data: no debug information,
# build id, unwind tables or compiler name. loop-distribute-patterns would replace loops with calls of memcpy, including
# the loop in memcpy itself and the loop that STREAM measures.
cflags="-std=gnu11 -Wall -Wextra -Werror -Wshadow -ffreestanding -fno-builtin
	-fno-tree-loop-distribute-patterns -fno-stack-protector -fno-pie
	-fno-asynchronous-unwind-tables -fno-ident -ffunction-sections -fdata-sections"
ldflags="-nostdlib -static -no-pie -s -Wl,--gc-sections -Wl,--build-id=none
	-Wl,-z,noexecstack -Wl,-z,norelro -Wl,-z,noseparate-code"

# linpack runs only in the workload image, with Debian's C library there.
solver_flags="-std=c11 -D_GNU_SOURCE -O2 -Wall -Wextra -Werror -Wshadow -ffp-contract=off -fPIE -pie -s
	-fno-asynchronous-unwind-tables -fno-ident -Wl,--build-id=none -Wl,-z,relro,-z,now"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

build() {
	arch=$1
	libraries=
	case $arch in
	amd64) cpu=x86_64 package=gcc more= ;;
	# Outlined atomics would need libgcc, which is not linked.
	arm64) cpu=aarch64 package="gcc-aarch64-linux-gnu linux-libc-dev-arm64-cross libc6-dev-arm64-cross" more=-mno-outline-atomics ;;
	# Swapping the byte order needs a function of libgcc, which has no dependencies.
	riscv64) cpu=riscv64 package="gcc-riscv64-linux-gnu linux-libc-dev-riscv64-cross libc6-dev-riscv64-cross" more= libraries=-lgcc ;;
	*) die "architecture $arch is not one of amd64 arm64 riscv64" ;;
	esac

	eval "cc=\${CC_$arch:-}"
	if [ -z "$cc" ] && [ "$arch" = "$host" ]; then
		cc=${CC:-gcc} package="gcc linux-libc-dev libc6-dev"
	elif [ -z "$cc" ]; then
		cc=$cpu-linux-gnu-gcc
	fi
	# shellcheck disable=SC2086 # a compiler may be given with options
	machine=$($cc -dumpmachine 2>/dev/null) ||
		die "compiler $cc for $arch does not run; on Debian: apt-get install $package"
	case $machine in
	$cpu-*linux*) ;;
	*) die "compiler $cc builds programs for $machine, not for $arch; set CC_$arch" ;;
	esac
	echo '#include <linux/types.h>' | $cc -E -o "$work/headers" - 2>/dev/null ||
		die "compiler $cc finds no kernel headers; on Debian: apt-get install $package"

	objects=
	for source in "$root"/probe/*.c "$root/probe/start-$cpu.S"; do
		name=$(basename "$source")
		optimise=-Os # but the kernels of STREAM, which are to be vectorised
		[ "$name" != stream.c ] || optimise=-O3
		# shellcheck disable=SC2086
		$cc $cflags $more $optimise -I "$root/probe" -c "$source" -o "$work/$name.o"
		objects="$objects $work/$name.o"
	done
	# shellcheck disable=SC2086
	$cc $ldflags -o "$work/probe" $objects $libraries

	echo "# $arch: $($cc --version | head -n 1 | sed 's/^[^ ]* //')" >>"$work/compilers"

	size=$(wc -c <"$work/probe" | tr -d ' ')
	[ "$size" -lt "$limit" ] || die "the probe for $arch has $size bytes, but the limit is $limit"
	place "$work/probe" "$out/probe-$arch"

	echo '#include <math.h>' | $cc -E -o "$work/headers" - 2>/dev/null ||
		die "compiler $cc finds no C library; on Debian: apt-get install $package"
	# shellcheck disable=SC2086
	(cd "$root/linpack" && $cc $solver_flags -o "$work/linpack" linpack.c -ldl -lm)
	place "$work/linpack" "$solver_out/linpack-$arch"
}

# place FILE TO replaces the file TO atomically.
place() {
	mkdir -p "$(dirname "$2")"
	chmod 0755 "$1"
	mv "$1" "$(dirname "$2")/.$(basename "$2").new"
	mv "$(dirname "$2")/.$(basename "$2").new" "$2"
	echo "$(basename "$2"): $(wc -c <"$2" | tr -d ' ') bytes"
}

# record writes the record of all programs.
record() {
	cd "$root"
	{
		echo "# Written by make probes; sha256sum --check reads it. The compilers:"
		cat "$work/compilers"
		sha256sum scripts/build-probe.sh probe/*.[chS] linpack/*.c internal/image/probe/probe-* internal/image/debian/linpack/linpack-*
	} >"$work/record"
	mv "$work/record" internal/image/programs.sum
}

[ $# -gt 0 ] || set -- "$host"
for arch; do
	build "$arch"
done
[ -n "${PROBE_OUT:-}" ] || [ "$*" != "amd64 arm64 riscv64" ] || record
