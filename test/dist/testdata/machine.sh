#!/bin/bash
# machine.sh SUITE ROOT DEB unpacks Debian with runc in the folder ROOT, and installs, uses and purges the package DEB in it. It runs in namespaces of
# its own for mounts and processes, so that none of them outlives it. ROOT.before and ROOT.after get the paths in the root file system.
set -euo pipefail
suite=$1 root=$2 deb=$3
mkdir "$root"
# pivot_root, which runtimes call, needs a root that is a mount point.
mount -t tmpfs -o mode=0755 machine "$root"
mmdebstrap --quiet --variant=minbase --include=runc "$suite" "$root"
for dir in proc sys dev; do
	mount --rbind "/$dir" "$root/$dir"
done
for dir in run dev/shm; do
	mount -t tmpfs -o mode=0755 machine "$root/$dir"
done
export HOME=/root TMPDIR=/tmp PATH=/usr/sbin:/usr/bin:/sbin:/bin
unset TOUCHSTONE_RUNTIMES # a machine has its parts at the usual place
# The cgroups belong to the machine, and outlive a script that fails.
trap '[ $? = 0 ] || { jobs -p | xargs -r kill -KILL || true; chroot "$root" touchstone cleanup; }' EXIT
# dpkg's own records and logs change with each package, and /root has the results of the user.
paths() {
	chroot "$root" find / -path /proc -prune -o -path /sys -prune -o -path /dev/pts -prune -o -path /root -prune -o -path /var/lib/dpkg -prune \
		-o -path /var/log -prune -o -print | sort
}

paths >"$root.before"
cp "$deb" "$root/root/touchstone.deb"
chroot "$root" dpkg --install /root/touchstone.deb
chroot "$root" touchstone version
chroot "$root" touchstone benchmark -d /root/out -t native,oci/runc --filter operations.container.lifecycle --runs 2
chroot "$root" touchstone report -d /root/out -o csv | tee "$root/root/report.csv"
grep -q native "$root/root/report.csv"
grep -q oci/runc "$root/root/report.csv"

# A part of another store is installed and used. The package's removal keeps it, and the purge removes it.
mkdir -p "$root/root/store/runc/1.5.2/bin"
cp "$root/usr/sbin/runc" "$root/root/store/runc/1.5.2/bin"
printf '{"name": "runc", "version": "1.5.2", "programs": [{"name": "runc", "sha256": "%s"}]}' \
	"$(sha256sum <"$root/usr/sbin/runc" | cut -d ' ' -f 1)" >"$root/root/store/runc/1.5.2/part.json"
chroot "$root" touchstone setup --yes --allow-concurrent --from /root/store runc
[ "$(chroot "$root" touchstone setup --path)" = /var/lib/touchstone/runtimes/runc/1.5.2/bin ]

# The removal of the package also removes the leftovers of a killed run, and a purge removes cached images and the files of their builds, but no file of a stranger.
chroot "$root" touchstone benchmark -d /root/killed -t oci/runc --filter operations.container.lifecycle --runs 1000 >"$root/root/killed.log" 2>&1 &
until bundle=$(compgen -G "$root/run/touchstone/*/oci/0/bundles/*"); do
	kill -0 $! || { cat "$root/root/killed.log"; exit 1; }
	sleep 0.05
done
kill -KILL $!
wait $! || true
id=${bundle#"$root/run/touchstone/"}
id=${id%%/*}
# A child of the run has its locks until it executes its program or ends.
for lock in "$root"/{run,var/lib}/touchstone/"$id"/lock; do
	flock "$lock" true
done
mkdir -p "$root/var/cache/touchstone/blobs/sha256"
touch "$root"/var/cache/touchstone/{index.json,packages-amd64.lock,clip-0123456789ab.ivf} "$root/var/lib/touchstone/stranger"
chroot "$root" dpkg --remove touchstone | tee "$root/root/removal.log"
grep "removed run $id" "$root/root/removal.log"
[ -z "$(find /sys/fs/cgroup -name "touchstone-$id" -print -quit)" ]
[ -e "$root/var/cache/touchstone/index.json" ]
[ -e "$root/var/lib/touchstone/runtimes/runc/1.5.2/part.json" ]
chroot "$root" dpkg --purge touchstone
paths >"$root.after"
