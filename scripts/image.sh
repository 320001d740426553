#!/usr/bin/env bash
# Builds the workload image for the architectures ARCH... (default: this machine's) with bin/touchstone, or another one that TOUCHSTONE names.
#
# A Debian point release removes listed packages from the mirrors. The tests then continue with the current packages, and a
# maintainer must update the list: see docs/image.md.
set -euo pipefail
cd "$(dirname "$0")/.."

touchstone=${TOUCHSTONE:-bin/touchstone}
[ $# != 0 ] || set -- "$(go env GOARCH)"
for arch; do
	"$touchstone" image build --arch "$arch" || {
		echo "image: the list of packages is out of date; trying what the mirror has now" >&2
		"$touchstone" image build --arch "$arch" --update
	}
done
