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
for walk in message deadletter; do
	go tool covdata textfmt -i="$work/$walk" -o "$work/$walk.txt"
	# FILE:LINE: NAME PERCENT, without the methods of other types that have the same line
	go tool cover -func="$work/$walk.txt" | awk '$NF != "0.0%" && $1 != "total:" {sub(/:[0-9]+:$/, "", $1); print $1, $2}' | sed "s|^$module/||" | grep -v '^scripts/' >"$work/$walk.functions"
	printf '%-12s %4d functions in %3d files\n' "$walk" "$(wc -l <"$work/$walk.functions")" "$(cut -d' ' -f1 "$work/$walk.functions" | sort -u | wc -l)"
	sed -E 's|/[^/ ]+ .*||' "$work/$walk.functions" | sort | uniq -c | awk '{printf "  %4d %s\n", $1, $2}'
	[ "${1:-}" != -v ] || sort "$work/$walk.functions"
done
