#!/bin/bash
# container.sh DIR ARCHIVE IMAGE loads the image IMAGE from ARCHIVE into a Podman of its own, and uses it on the results in DIR/out, of which A and B
# are two baselines. Each file in DIR/answers gets an answer. It runs in namespaces of its own for mounts, the network and processes, so that nothing
# outlives it.
set -euo pipefail
dir=$1 archive=$2 image=$3
mkdir "$dir/answers"
# The containers get no cgroups, and the state of Podman is in memory.
for path in /sys/fs/cgroup /run /dev/shm; do
	mount -t tmpfs -o mode=0755 machine "$path"
done
ip link set lo up
export HOME=$dir
podman=(podman --root "$dir/storage" --runroot /run/podman --storage-driver vfs --cgroup-manager cgroupfs --events-backend none --runtime crun)
# Some machines forbid higher limits than their own. The results belong to root, and other users cannot read them.
run=("${podman[@]}" run --cgroups=disabled --ulimit nofile=1024:1024 --ulimit nproc=1024:1024 --network host)
results=(--user 0 --volume "$dir/out:/data/out")

"${podman[@]}" load --input "$archive"
"${run[@]}" --rm "$image" version >"$dir/answers/version"
! "${run[@]}" --rm "${results[@]}" --user 65532 "$image" report >"$dir/answers/forbidden" 2>&1 || exit 1
for verb in report "compare A B" runs; do
	# shellcheck disable=SC2086 # one word for each argument
	"${run[@]}" --rm --user 0 --read-only --volume "$dir/out:/data/out:ro" "$image" $verb >"$dir/answers/${verb%% *}"
done
"${run[@]}" --rm "${results[@]}" "$image" report -o html -O out/page.html

# The pages at a published port are at all addresses of the container.
mkfifo "$dir/pages"
"${run[@]}" --name ui "${results[@]}" "$image" ui --listen 0.0.0.0:8642 >"$dir/pages" &
exec {pages}<"$dir/pages"
read -r address <&"$pages"
token=${address##*token=}
for authorization in "X-Nobody: nothing" "Authorization: Bearer $token"; do
	exec {page}<>/dev/tcp/127.0.0.1/8642
	printf 'GET /compare?a=A&b=B&format=markdown HTTP/1.0\r\nHost: 127.0.0.1:8642\r\n%s\r\n\r\n' "$authorization" >&"$page"
	cat <&"$page" >>"$dir/answers/ui"
	exec {page}>&-
done
"${podman[@]}" kill --signal INT ui >/dev/null
wait $! || true
"${podman[@]}" rm ui >/dev/null

# Touchstone says where it is.
"${run[@]}" --rm --user 0 "$image" host >"$dir/answers/host"
"${run[@]}" --rm --user 0 "$image" targets >"$dir/answers/targets" || true
"${run[@]}" --rm "$image" benchmark -d /tmp/out -t fake/quick --filter operations.container.lifecycle -n 3 >"$dir/answers/benchmark"
