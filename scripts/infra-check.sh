#!/usr/bin/env bash
# Compiles, lints and formats every Bicep file, and compares the committed snapshots with what the templates deploy now.
# Works offline. Without the Bicep CLI it says that it skipped; with INFRA_REQUIRED=1 that is a failure.
# `infra-check.sh update` rewrites formatting and snapshots instead of comparing.
set -euo pipefail
cd "$(dirname "$0")/../infra"

if ! command -v bicep >/dev/null; then
	if [ "${INFRA_REQUIRED:-0}" = 1 ]; then
		echo "infra: bicep is not on PATH, and INFRA_REQUIRED=1 asks for the check" >&2
		exit 1
	fi
	echo "infra: SKIPPED, since bicep is not on PATH (https://aka.ms/bicep-install); go test ./infra/... checks what it can without it" >&2
	exit 0
fi

# The CLI unpacks itself under the home directory and wants ICU, which slim images lack.
export DOTNET_SYSTEM_GLOBALIZATION_INVARIANT=1
update=${1:-}
failed=0
temporary=$(mktemp -d)
trap 'rm -rf "$temporary"' EXIT

fail() {
	echo "infra: $1" >&2
	failed=1
}

# quiet runs a command that must succeed and say nothing: a misspelt property is only a warning to the compiler.
quiet() {
	local what=$1
	shift
	if ! "$@" >/dev/null 2>"$temporary/said" || [ -s "$temporary/said" ]; then
		fail "$what"
		cat "$temporary/said" >&2
	fi
}

# The formatter has no mode that only looks, so that it works on a copy.
formatted() {
	if [ "$update" = update ]; then
		bicep format --pattern './**/*.bicep*'
		return
	fi
	mkdir "$temporary/infra"
	cp -R . "$temporary/infra"
	(cd "$temporary/infra" && bicep format --pattern './**/*.bicep*')
	if ! diff -ru . "$temporary/infra" >"$temporary/diff"; then
		fail "files are not formatted; run scripts/infra-check.sh update"
		cat "$temporary/diff" >&2
	fi
}

snapshot() {
	local scope=(--subscription-id 00000000-0000-0000-0000-000000000000 --location westeurope) mode=Validate
	if ! grep -q "^using '../main.bicep'" "$1"; then
		scope+=(--resource-group rg-orderworker-standard)
	fi
	[ "$update" != update ] || mode=Overwrite
	if ! bicep snapshot "$1" --mode "$mode" "${scope[@]}" >"$temporary/snapshot" 2>&1; then
		fail "$1 deploys something else than its snapshot says; look, then run scripts/infra-check.sh update"
		cat "$temporary/snapshot" >&2
	fi
}

quiet "the templates do not compile and lint without a word" bicep lint --pattern './**/*.bicep'
quiet "the parameter files do not compile without a word" bicep build-params --pattern './**/*.bicepparam' --outdir "$temporary/parameters"
formatted
for file in snapshots/*.bicepparam; do
	snapshot "$file"
done

[ "$failed" = 0 ] || exit 1
echo "infra: $(ls *.bicep modules/*.bicep | wc -l) templates, $(ls *.bicepparam snapshots/*.bicepparam | wc -l) parameter files and $(ls snapshots/*.snapshot.json | wc -l) snapshots are in order"
