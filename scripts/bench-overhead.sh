#!/usr/bin/env bash
# Prints the ratio of Touchstone's CreateAndRun + Destroy to the same create, start, kill and delete by a bare loop in C;
# see -h and docs/overhead.md.
set -euo pipefail
export LC_ALL=C

usage() {
	cat <<'END'
usage: bench-overhead.sh [-k] [-t] [-b BATCHES] [-n LIFECYCLES] [RUNTIME...]

Compares the time that Touchstone reports for the life of a container (CreateAndRun + Destroy of
operations.container.lifecycle) with the time of a bare C loop (scripts/bareloop) around the same runtime: same bundle,
root file system, arguments, cgroups, mount namespace and time between two creates. The two run in turn, a batch each, and
the first one of a pair alternates. For each runtime the script prints the 10th, 50th and 90th percentiles of all lifecycles
with their ratios, and the median ratio of the paired batches with its 95 % interval. It also prints the ratio of the bare
loop's own batches to each other, every second one to the others, which differ by chance alone.

On cgroup v1 a create either waits for a grace period of RCU in the kernel or not, by chance. The wait is as long as the rest
of a life. So the script sets /sys/kernel/rcu_expedited to 1 for both sides, which makes grace periods short, and restores
it at the end.

With -t the script compares runs with traces (--trace LIFECYCLES) with runs without, instead of the bare loop: the ratio of the
timed trials, which no tracer must change, and the ratio of the traced trials to the timed ones of the same runs.

  -k             keep the kernel's setting of /sys/kernel/rcu_expedited
  -t             compare runs with traces and runs without
  -b BATCHES     batches of each side, 6 or more (default 40)
  -n LIFECYCLES  lifecycles in a batch, 2 or more (default 15)
  RUNTIME        crun and runc unless given; a name on PATH

TOUCHSTONE is the binary, bin/touchstone unless set. The script must run as root, with gcc and go.
Exit code: 0 if the ratios of every runtime are at most 1.03 at the 10th percentile and at the median, 1 if not. With -t it is 1
if the timed trials of runs with traces are longer, by the whole interval.
END
}

die() {
	echo "bench-overhead: $*" >&2
	exit 1
}

batches=40 lifecycles=15 expedited=/sys/kernel/rcu_expedited traced=
while getopts ktb:n:h option; do
	case $option in
	k) expedited= ;;
	t) traced=1 ;;
	b) batches=$OPTARG ;;
	n) lifecycles=$OPTARG ;;
	h) usage && exit 0 ;;
	*) usage >&2 && exit 2 ;;
	esac
done
shift $((OPTIND - 1))
[[ $batches =~ ^[0-9]+$ && $batches -ge 6 ]] || die "-b $batches: must be 6 or more"
[[ $lifecycles =~ ^[0-9]+$ && $lifecycles -ge 2 ]] || die "-n $lifecycles: must be 2 or more"
[ $# -gt 0 ] || set -- crun runc

root=$(cd "$(dirname "$0")/.." && pwd)
touchstone=${TOUCHSTONE:-$root/bin/touchstone}
[ "$(id -u)" -eq 0 ] || die "the runtimes need root: run it as root"
[ -x "$touchstone" ] || die "there is no $touchstone: run make build, or set TOUCHSTONE"
for program in gcc go "$@"; do
	command -v "$program" >/dev/null || die "$program is not on PATH: install it"
done

# As in Touchstone, state is in memory, and the files of containers are on disk.
state=$(mktemp -d /run/bareloop.XXXXXX)
name=${state##*/}
data=$(mktemp -d /var/lib/"$name".XXXXXX)
joined=() others=() setting=

# Removes all remains, also of a container whose life was interrupted.
# shellcheck disable=SC2317 # called by the trap
clean_up() {
	local code=$? dir words pids
	trap - EXIT
	for words in "$state"/*/words; do
		[ -e "$words/delete" ] || continue
		mapfile -t pids <"$words/delete"
		"$(<"$words/runtime")" "${pids[@]}" >/dev/null 2>&1 || true
	done
	for dir in "${joined[@]}" "${others[@]}"; do
		[ -d "$dir" ] || continue
		for _ in {1..50}; do
			mapfile -t pids < <(find "$dir" -name cgroup.procs -exec cat {} + 2>/dev/null)
			[ ${#pids[@]} -eq 0 ] || kill -KILL "${pids[@]}" 2>/dev/null || true
			find "$dir" -depth -type d -exec rmdir {} + 2>/dev/null && break
			sleep 0.1
		done
	done
	[ -z "$setting" ] || echo "$setting" >"$expedited" || echo "bench-overhead: write $setting to $expedited by hand" >&2
	rm -rf "$state" "$data"
	exit "$code"
}
trap clean_up EXIT
trap 'exit 130' INT TERM

# mount_of CONTROLLER: where its hierarchy is mounted; cgroup2 without one.
mount_of() {
	awk -v wanted="$1" '{
		for (i = 7; $i != "-"; i++);
		n = split($(i + 3), options, ",")
		if (wanted == "" && $(i + 1) == "cgroup2") { print $5; exit }
		for (o = 1; o <= n; o++)
			if (wanted != "" && $(i + 1) == "cgroup" && options[o] == wanted) { print $5; exit }
	}' /proc/self/mountinfo
}

# capture RUNTIME: runs one lifecycle by Touchstone and keeps the runtime's input: the arguments of each command,
# config.json, the root file system and the cgroups.
capture() {
	local words=$state/$1/words seen=$data/$1/seen
	mkdir -p "$words/bundle" "$state/$1/root" "$seen"
	command -v "$1" >"$words/runtime"
	cat >"$data/$1/wrapper" <<END
#!/usr/bin/env bash
set -eu
bundle=
for word; do
	case \$word in
	create | start | kill | delete) printf '%s\n' "\$@" >'$seen'/"\$word" ;;
	esac
	[ "\$word" != create ] || cp /proc/self/cgroup '$seen/cgroup'
	[ "\$bundle" != --bundle ] || cp "\$word/config.json" '$seen/config.json'
	bundle=\$word
done
if [ -e '$seen/config.json' ] && ! [ -e '$data/$1/rootfs' ]; then
	cp -a "\$(sed -E 's/.*"root":\{"path":"([^"]*)".*/\1/' '$seen/config.json')" '$data/$1/rootfs'
fi
exec '$(command -v "$1")' "\$@"
END
	chmod +x "$data/$1/wrapper"
	"$touchstone" benchmark -d "$data/$1/captured" --wait --runtime "captured=$data/$1/wrapper" --targets oci/captured \
		--filter operations.container.lifecycle --runs 1 --warmup 0 >/dev/null 2>"$data/$1/log" ||
		die "Touchstone's lifecycle on $1 did not work: $(cat "$data/$1/log")"

	# The same words for another container, with our names in the place of Touchstone's.
	local verb word all bundle="" own="" log="" id=""
	mapfile -t all <"$seen/create"
	for ((i = 0; i < ${#all[@]} - 1; i++)); do
		case ${all[i]} in
		--bundle) bundle=${all[i + 1]} ;;
		--root) own=${all[i + 1]} ;;
		--log) log=${all[i + 1]} ;;
		esac
	done
	id=${all[-1]}
	[ -n "$bundle" ] || die "Touchstone's create has no --bundle: ${all[*]}"
	[ -n "$log" ] || die "Touchstone's create has no --log: ${all[*]}"
	for verb in create start kill delete; do
		mapfile -t all <"$seen/$verb"
		for word in "${all[@]}"; do
			word=${word//"$bundle"/"$words/bundle"}
			word=${word//"$own"/"$state/$1/root"}
			word=${word//"$log"/"$words/bundle/log"}
			printf '%s\n' "${word//"$id"/"$name"}"
		done >"$words/$verb"
	done
	sed -E -e 's#("root":\{"path":")[^"]*#\1'"$data/$1/rootfs"'#' \
		-e 's#("cgroupsPath":")[^"]*#\1@GROUP@/'"$name"'#' "$seen/config.json" >"$words/config.json"
	grep -q @GROUP@ "$words/config.json" || die "Touchstone's config.json has no cgroup: $(cat "$seen/config.json")"
}

# make_groups RUNTIME: makes cgroups like Touchstone's for create. Later commands may run outside of the trial's cgroup. It sets $options to
# the options for bareloop, $prefix to the path of the cgroups, and $hidden to the mount points that Touchstone hides.
make_groups() {
	local controllers path mounts
	options=() hidden=() unified='' prefix=''
	while IFS=: read -r _ controllers path; do
		local mount
		mount=$(mount_of "${controllers%%,*}")
		[ -n "$mount" ] || continue
		if [[ $path != */touchstone-* ]]; then
			others+=("$mount/$name")
			options+=(-o "$mount/$name")
			continue
		fi
		local base=${path%%/touchstone-*}
		prefix=$base/$name
		mkdir -p "$mount$prefix"
		joined+=("$mount$prefix")
		if [ -n "$controllers" ]; then
			options+=(-g "$mount$prefix")
			mkdir -p "$mount$prefix/host"
			continue
		fi
		unified=$mount$prefix
	done <"$data/$1/seen/cgroup"
	[ -n "$prefix" ] || die "Touchstone's create ran in no cgroup of a trial: $(cat "$data/$1/seen/cgroup")"
	# A unified hierarchy beside v1 hierarchies is hidden from the runtimes. Alone, it holds the cgroups.
	mounts=$(mount_of cpu)
	if [ -n "$mounts" ] && [ -n "$unified" ]; then
		hidden=("$(mount_of "")")
	elif [ -n "$unified" ]; then
		for path in cpu memory pids; do
			echo "+$path" >"$unified/cgroup.subtree_control"
		done
		mkdir -p "$unified/host"
		options+=(-g "$unified")
		unified=
	fi
}

# bare RUNTIME: one batch of the bare loop, one line per lifecycle. It has the rhythm of Touchstone's last batch.
bare() {
	"$data/figures" rhythm "$data/$1/last.json" >"$data/$1/rhythm"
	(
		[ -z "$unified" ] || echo "$BASHPID" >"$unified/cgroup.procs"
		# shellcheck disable=SC2016 # the inner shell expands it
		exec unshare --mount --propagation slave bash -c '
			while [ "$1" != -- ]; do umount -l "$1"; shift; done
			shift
			exec "$@"' bareloop "${hidden[@]}" -- \
			"$data/bareloop" -c "$prefix" "${options[@]}" "$data/$1/rhythm" "$(command -v "$1")" "$state/$1/words"
	) >>"$data/$1/bare"
}

# with_touchstone RUNTIME NAME [OPTION...]: one batch of Touchstone, exported as JSON.
with_touchstone() {
	local out=$data/$1/$2
	mkdir -p "$data/$1"
	"$touchstone" benchmark -d "$out" --wait --targets "oci/$1" --filter operations.container.lifecycle \
		--runs "$lifecycles" --warmup 1 "${@:3}" >/dev/null 2>"$data/$1/log" || die "Touchstone on $1: $(cat "$data/$1/log")"
	"$touchstone" export -d "$out" >"$data/$1/last.json"
	cp "$data/$1/last.json" "$data/$1/$2.json"
}

# pair RUNTIME BATCH: a batch of Touchstone and one of the bare loop, or two of Touchstone without and with traces. The first one alternates.
pair() {
	local name first second
	name=batch-$(printf %04d "$2")
	first=(with_touchstone "$1" "$name") second=(bare "$1")
	[ -z "$traced" ] || second=(with_touchstone "$1" "traced-$name" --trace "$lifecycles")
	if (($2 % 2)); then
		"${second[@]}"
		"${first[@]}"
	else
		"${first[@]}"
		"${second[@]}"
	fi
}

(cd "$root" && go build -o "$data/figures" ./scripts/figures)
if [ -z "$traced" ]; then
	gcc -O2 -o "$data/bareloop" "$root/scripts/bareloop/bareloop.c"
	for runtime; do
		capture "$runtime"
	done
	make_groups "$1"
fi
if [ -e "$expedited" ]; then
	before=$(<"$expedited")
	echo 1 >"$expedited" || die "$expedited cannot be written: give -k"
	setting=$before
fi
for ((batch = 0; batch < batches; batch++)); do
	for runtime; do
		pair "$runtime" "$batch"
	done
done
code=0
for runtime; do
	if [ -n "$traced" ]; then
		"$data/figures" traced "oci/$runtime" "$data/$runtime"/batch-*.json "$data/$runtime"/traced-*.json || code=1
	else
		"$data/figures" overhead "oci/$runtime" "$data/$runtime/bare" "$data/$runtime"/batch-*.json || code=1
	fi
done
exit "$code"
