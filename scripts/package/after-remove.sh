#!/bin/sh
# dpkg calls this script with "purge" when a user wants no trace of touchstone, and rpm with "0". It removes the parts of touchstone setup, the cached
# images and the files of their builds by their names, and the directories of runs if only their lock is left: they can have other files, such as the record of `touchstone host tune`. Results stay.
set -e
case $1 in
purge | 0)
	cache=/var/cache/touchstone
	if [ -d "$cache" ] && [ ! -L "$cache" ] && [ -O "$cache" ]; then
		cd "$cache"
		rm -rf --one-file-system blobs rootfs tmp index.json oci-layout lock packages-*.lock clip-*.ivf
		cd /
	fi
	# The parts of touchstone setup, which nothing else uses. The program itself is gone.
	runtimes=/var/lib/touchstone/runtimes
	if [ -d "$runtimes" ] && [ ! -L "$runtimes" ] && [ -O "$runtimes" ]; then
		rm -rf --one-file-system "$runtimes"
	fi
	for dir in "$cache" /var/lib/touchstone /run/touchstone /dev/shm/touchstone; do
		if [ -d "$dir" ] && [ ! -L "$dir" ] && [ -O "$dir" ]; then
			rm -f "$dir/lock"
			rmdir --ignore-fail-on-non-empty "$dir"
		fi
	done
	;;
esac
