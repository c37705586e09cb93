#!/usr/bin/env bash
# Runs small programs on the unmodified clients of Azure for other languages against devenv on free ports: JavaScript, Python
# and Java, for Service Bus and Cosmos DB. What has no runtime here is skipped, and the last line says so. The packages are
# pinned beside the programs, in testenv/clients, and installed into a cache.
#
#   scripts/clients.sh               all languages
#   scripts/clients.sh js python     these
#   CLIENTS_REQUIRED=1 ...           a skipped language is a failure
#   CLIENTS_CACHE=folder ...         where packages are kept
set -uo pipefail
cd "$(dirname "$0")/.."
sources=$PWD/testenv/clients
cache=${CLIENTS_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/orderworker/clients}
logs=$(mktemp -d)
server=
trap '[ -z "$server" ] || kill "$server" 2>/dev/null; rm -rf "$logs"' EXIT

# serve starts devenv on ports that are free, and exports where it is.
serve() {
	for _ in 1 2 3 4 5 6 7 8 9 10; do
		./bin/devenv --port-offset $((1000 + RANDOM)) --config "$sources/config.json" >"$logs/devenv" 2>"$logs/refusals" &
		server=$!
		for _ in $(seq 100); do
			kill -0 "$server" 2>/dev/null || break
			if grep -q '^curl' "$logs/devenv"; then
				eval "$(grep '^export \(SERVICEBUS_CONNECTION_STRING\|COSMOS_ENDPOINT\|COSMOS_KEY\)=' "$logs/devenv")"
				export CLIENTS_SERVICEBUS=$SERVICEBUS_CONNECTION_STRING CLIENTS_COSMOS=$COSMOS_ENDPOINT CLIENTS_COSMOS_KEY=$COSMOS_KEY
				CLIENTS_SERVICEBUS_ADMIN=$(sed -n 's|^curl -s http://\([^/]*\)/queues.*|\1|p' "$logs/devenv")
				export CLIENTS_SERVICEBUS_ADMIN
				return 0
			fi
			sleep 0.1
		done
	done
	cat "$logs/refusals" >&2
	return 1
}

# fresh reports whether a language's packages are those that its file asks for, and otherwise begins their folder anew.
fresh() { # language, file
	cmp -s "$sources/$1/$2" "$cache/$1/installed" && return 0
	rm -rf "${cache:?}/$1"
	mkdir -p "$cache/$1"
	return 1
}

installed() { cp "$sources/$1/$2" "$cache/$1/installed"; }

missing() { # commands
	for c in "$@"; do command -v "$c" >/dev/null || { echo "there is no $c"; return 0; }; done
	return 1
}

# Each prepare_ function says on its output why the language cannot be tried, and then fails.
prepare_js() {
	missing node npm && return 1
	fresh js package.json && return 0
	cp "$sources/js/package.json" "$cache/js/"
	(cd "$cache/js" && npm install --no-audit --no-fund --no-package-lock --loglevel=error) >"$logs/install-js" 2>&1 ||
		{ echo "its packages could not be installed: $(tail -1 "$logs/install-js")"; return 1; }
	installed js package.json
}

run_js() {
	cp "$sources"/js/*.js "$cache/js/" && cd "$cache/js" || return 1
	local failed=0
	node servicebus.js || failed=1
	node topics.js || failed=1
	node sessions.js || failed=1
	node administration.js || failed=1
	node cosmos.js || failed=1
	return $failed
}

prepare_python() {
	missing python3 && return 1
	fresh python requirements.txt && return 0
	(python3 -m venv "$cache/python" && "$cache/python/bin/pip" install -q --disable-pip-version-check -r "$sources/python/requirements.txt") >"$logs/install-python" 2>&1 ||
		{ echo "its packages could not be installed: $(tail -1 "$logs/install-python")"; return 1; }
	installed python requirements.txt
}

run_python() {
	export PYTHONDONTWRITEBYTECODE=1
	local failed=0
	"$cache/python/bin/python" "$sources/python/servicebus.py" || failed=1
	"$cache/python/bin/python" "$sources/python/topics.py" || failed=1
	"$cache/python/bin/python" "$sources/python/sessions.py" || failed=1
	"$cache/python/bin/python" "$sources/python/administration.py" || failed=1
	"$cache/python/bin/python" "$sources/python/cosmos.py" || failed=1
	return $failed
}

prepare_java() {
	missing javac mvn && return 1
	fresh java pom.xml && return 0
	(cd "$cache/java" && mvn -q -B -f "$sources/java/pom.xml" dependency:build-classpath -Dmdep.outputFile="$cache/java/classpath") >"$logs/install-java" 2>&1 ||
		{ echo "its packages could not be installed: $(tail -1 "$logs/install-java")"; return 1; }
	installed java pom.xml
}

run_java() {
	local classes path failed=0
	path=$(cat "$cache/java/classpath") && classes=$(mktemp -d -p "$logs") || return 1
	javac -d "$classes" -cp "$path" "$sources"/java/*.java || return 1
	java -cp "$classes:$path" ServiceBus 2> >(grep -v '^SLF4J' >&2) || failed=1
	java -cp "$classes:$path" Topics 2> >(grep -v '^SLF4J' >&2) || failed=1
	java -cp "$classes:$path" Sessions 2> >(grep -v '^SLF4J' >&2) || failed=1
	java -cp "$classes:$path" Cosmos 2> >(grep -v '^SLF4J' >&2) || failed=1
	return $failed
}

serve || { echo "clients: devenv did not start" >&2; exit 1; }
languages=${*:-js python java}
ran= skipped= failed=
for l in $languages; do
	if why=$("prepare_$l"); then
		ran="$ran $l"
		("run_$l" >"$logs/$l" 2>&1; echo $? >"$logs/$l.code") &
		jobs="${jobs:-} $!"
	else
		skipped="$skipped $l"
		echo "SKIPPED $l: $why"
	fi
done
# shellcheck disable=SC2086 # several ids
[ -z "${jobs:-}" ] || wait $jobs
for l in $ran; do
	cat "$logs/$l"
	[ "$(cat "$logs/$l.code")" = 0 ] || failed="$failed $l"
done
echo "clients: tried:${ran:- none}; failed:${failed:- none}; skipped:${skipped:- none}"
[ -z "$failed" ] || exit 1
[ -n "$ran" ] || { echo "clients: NOTHING WAS TRIED" >&2; exit 1; }
[ -z "$skipped" ] || [ -z "${CLIENTS_REQUIRED:-}" ] || exit 1
