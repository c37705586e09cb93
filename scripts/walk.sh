#!/usr/bin/env bash
# Counts the functions and files of this module that one new message passes, and one dead letter's reprocess. The embedded
# environment and this script do not count. With -v it lists the functions by package.
set -euo pipefail
cd "$(dirname "$0")/.."
module=$(go list -m)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
go build -cover -covermode=atomic -coverpkg="$module/worker/...,$module/cosmosstore/...,$module/internal/...,$module/scripts/walk" -o "$work/walk" ./scripts/walk
"$work/walk" "$work"
functions() {
	go tool covdata textfmt -i="$work/$1" -o "$work/$1.txt"
	# FILE:LINE: NAME PERCENT, without the methods of other types that have the same line
	go tool cover -func="$work/$1.txt" | awk '$NF != "0.0%" && $1 != "total:" {sub(/:[0-9]+:$/, "", $1); print $1, $2}' | sed "s|^$module/||" | grep -v '^scripts/' | sort >"$work/$1.functions"
}
count() { printf '%4d functions in %3d files' "$(wc -l <"$1")" "$(cut -d' ' -f1 "$1" | sort -u | wc -l)"; }
functions start
for walk in message deadletter; do
	functions $walk
	printf '%-12s %s' "$walk" "$(count "$work/$walk.functions")"
	if [ $walk = deadletter ]; then
		comm -23 "$work/$walk.functions" "$work/start.functions" >"$work/own.functions"
		printf ', and %s that no command without a message runs' "$(count "$work/own.functions")"
	fi
	echo
	sed -E 's|/[^/ ]+ .*||' "$work/$walk.functions" | sort | uniq -c | awk '{printf "  %4d %s\n", $1, $2}'
	[ "${1:-}" != -v ] || cat "$work/$walk.functions"
done
