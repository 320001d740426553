#!/usr/bin/env bash
# Runs every fuzz test for FUZZTIME (default 5s). `make fuzz` calls it.
set -euo pipefail
cd "$(dirname "$0")/.."

grep -rl --include='*_test.go' '^func Fuzz' . | xargs -rn1 dirname | sort -u | while read -r package; do
	go test -list '^Fuzz' "$package" | grep '^Fuzz' | while read -r fuzz; do
		echo "fuzz: $package $fuzz"
		go test -run '^$' -fuzz "^$fuzz\$" -fuzztime "${FUZZTIME:-5s}" "$package" </dev/null
	done
done
