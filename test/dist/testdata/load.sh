#!/bin/bash
# load.sh DIR ARCHIVE loads the image in ARCHIVE into a Docker of its own, and imports it into the containerd of that Docker. DIR/docker and
# DIR/containerd get the names of the images. It runs in namespaces of its own for mounts, the network and processes, so that nothing outlives it.
set -euo pipefail
dir=$1 archive=$2
# The distribution's Docker needs the distribution's containerd.
export PATH=/usr/sbin:/usr/bin:/sbin:/bin:$PATH HOME=$dir DOCKER_HOST=unix://$dir/socket
for path in /run /opt; do
	mount -t tmpfs -o mode=0755 machine "$path"
done
dockerd --host "$DOCKER_HOST" --data-root "$dir/data" --exec-root "$dir/state" --pidfile "$dir/pid" --bridge none --iptables=false \
	--storage-driver vfs >"$dir/log" 2>&1 &
until docker version >/dev/null 2>&1; do
	kill -0 $! || { cat "$dir/log"; exit 1; }
	sleep 0.05
done
docker load --input "$archive"
docker image ls --format '{{.Repository}}:{{.Tag}}' >"$dir/docker"
ctr=(ctr --address "$dir/state/containerd/containerd.sock")
"${ctr[@]}" images import "$archive"
"${ctr[@]}" images ls --quiet >"$dir/containerd"
