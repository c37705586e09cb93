#!/usr/bin/env bash
# Runs every fuzz target of the module, each for the time given as the first argument (10s).
set -euo pipefail
cd "$(dirname "$0")/.."
time=${1:-10s}
failed=0
while read -r package; do
	for target in $(go test -list '^Fuzz' "$package" | grep '^Fuzz' || true); do
		printf '== %s %s\n' "$package" "$target"
		go test -run '^$' -fuzz "^$target\$" -fuzztime "$time" "$package" || failed=1
	done
done < <(grep -rl --include='*_test.go' '^func Fuzz' . | xargs -n1 dirname | sort -u)
exit $failed
