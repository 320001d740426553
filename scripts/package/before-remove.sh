#!/bin/sh
# dpkg calls this script with "remove" before it removes touchstone, and rpm with "0". After that no program can find the leftovers of killed runs.
set -e
case $1 in
remove | 0) touchstone cleanup || echo "touchstone: some leftovers of killed runs stay; see above" >&2 ;;
esac
