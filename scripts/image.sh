#!/usr/bin/env bash
# Builds the container image with docker, podman or buildah, whichever is installed, states its size, which has a bound, and
# tries it: the worker must be alive but not ready without its services, by its own health check, and must end with 0 when
# it is told to stop. Without any builder it builds the binary alone, with the Dockerfile's own go build line.
#
#   scripts/image.sh                       orderworker:dev for linux/amd64
#   IMAGE=name:tag PLATFORM=linux/arm64 scripts/image.sh
#   PACKAGE=./cmd/payments IMAGE=payments:dev scripts/image.sh    another program of this repository
#   IMAGE_BINARY_ONLY=1 scripts/image.sh   no image, even if there is a builder
#   IMAGE_REQUIRED=1 scripts/image.sh      the absence of a builder is a failure
set -euo pipefail
cd "$(dirname "$0")/.."

image=${IMAGE:-orderworker:dev}
package=${PACKAGE:-./cmd/orderworker}
title=${image##*/}
title=${title%%[:@]*}
platform=${PLATFORM:-linux/amd64}
bound=$((25 * 1000 * 1000))
version=${VERSION:-$(git describe --tags --always --dirty 2>/dev/null || echo dev)}
revision=$(git rev-parse HEAD 2>/dev/null || echo unknown)
# The time of the commit, not of the build: the same sources give the same image.
created=$(git log -1 --format=%cI 2>/dev/null || echo unknown)

if [ -z "$(ls "$package"/*.go 2>/dev/null)" ]; then
	echo "image: there is no program in $package" >&2
	exit 1
fi

state() {
	echo "image: $1 is $(($2 / 1000)) kB of $((bound / 1000)) kB"
	if [ "$2" -gt "$bound" ]; then
		echo "image: $1 is larger than its bound" >&2
		exit 1
	fi
}

# The go build line of the Dockerfile, with its variables given their values.
binary() {
	local out line
	out=$(mktemp -d)
	trap "rm -rf '$out'" EXIT
	line=$(sed -n 's/^ *\(go build .*\)$/\1/p' Dockerfile)
	line=${line//\$\{VERSION\}/$version}
	line=${line//\$\{PACKAGE\}/$package}
	line=${line//\/out\//$out/}
	CGO_ENABLED=0 GOOS=${platform%%/*} GOARCH=${platform##*/} bash -c "$line"
	if command -v file >/dev/null && ! file "$out/worker" | grep -q 'statically linked'; then
		echo "image: the binary is not static" >&2
		exit 1
	fi
	state "the binary for $platform" "$(stat -c %s "$out/worker" 2>/dev/null || stat -f %z "$out/worker")"
}

# Nothing listens on these ports: the worker lives, and waits for its services.
services=(
	"SERVICEBUS_CONNECTION_STRING=Endpoint=sb://127.0.0.1:1;SharedAccessKeyName=none;SharedAccessKey=bm9uZQ==;UseDevelopmentEmulator=true;"
	"COSMOS_ENDPOINT=http://127.0.0.1:1"
	"COSMOS_KEY=bm9uZQ=="
)

# tried takes the name of a function that runs the program inside the container with the arguments given to it.
tried() {
	local inside=$1 attempt
	"$inside" version
	for attempt in $(seq 1 20); do
		if "$inside" healthcheck >/dev/null 2>&1; then
			break
		fi
		if [ "$attempt" = 20 ]; then
			echo "image: the health check does not pass" >&2
			return 1
		fi
		sleep 0.5
	done
	if "$inside" healthcheck --path /readyz >/dev/null 2>&1; then
		echo "image: the worker says that it is ready, without any service" >&2
		return 1
	fi
}

try_engine() {
	local name=orderworker-try-$$ code
	trap "$builder rm -f $name >/dev/null 2>&1" EXIT
	"$builder" run -d --name "$name" --read-only --cap-drop ALL "${services[@]/#/--env=}" "$image" >/dev/null
	in_engine() { "$builder" exec "$name" /worker "$@"; }
	tried in_engine
	"$builder" stop -t 40 "$name" >/dev/null
	code=$("$builder" inspect --format '{{.State.ExitCode}}' "$name")
	stopped "$code"
}

# buildah has no engine: the program runs in the image's file system, as the image's user.
try_buildah() {
	local container root port process change code=0
	if [ "$(id -u)" != 0 ]; then
		echo "image: NOT TRIED, since buildah without root cannot give its file system to chroot" >&2
		return 0
	fi
	change=$(PATH=$PATH:/usr/sbin:/sbin command -v chroot)
	container=$(buildah from "$image")
	trap "buildah rm '$container' >/dev/null" EXIT
	root=$(buildah mount "$container")
	port=$((20000 + RANDOM % 20000))
	exec_in_root() {
		exec env -i GOMEMLIMIT=400MiB "WORKER_HEALTH_ADDRESS=127.0.0.1:$port" "${services[@]}" \
			"$change" --userspec=65532:65532 "$root" /worker "$@"
	}
	in_root() { (exec_in_root "$@"); }
	# exec, so that the signal reaches the program and not a shell before it.
	(exec_in_root run) >/dev/null &
	process=$!
	tried in_root || code=$?
	kill -TERM "$process"
	[ "$code" = 0 ] || return "$code"
	wait "$process" || code=$?
	stopped "$code"
}

stopped() {
	if [ "$1" != 0 ]; then
		echo "image: told to stop, the worker ended with $1" >&2
		return 1
	fi
	echo "image: alive, not ready without services, ends with 0 on SIGTERM"
}

builder=
if [ -z "${IMAGE_BINARY_ONLY:-}" ]; then
	if command -v docker >/dev/null && docker info >/dev/null 2>&1; then
		builder=docker
	elif command -v podman >/dev/null; then
		builder=podman
	elif command -v buildah >/dev/null; then
		builder=buildah
	fi
fi

arguments=(--platform "$platform" -t "$image" --build-arg "PACKAGE=$package" --build-arg "TITLE=$title" --build-arg "VERSION=$version" --build-arg "REVISION=$revision" --build-arg "CREATED=$created")
case $builder in
docker)
	docker build "${arguments[@]}" .
	size=$(docker image inspect --format '{{.Size}}' "$image")
	;;
podman)
	# The OCI format has no health check; docker's has.
	podman build --format docker "${arguments[@]}" .
	size=$(podman image inspect --format '{{.Size}}' "$image")
	;;
buildah)
	buildah build --layers --format docker "${arguments[@]}" .
	archive=$(mktemp -d)
	buildah push -q "$image" "docker-archive:$archive/image.tar"
	size=$(stat -c %s "$archive/image.tar")
	rm -rf "$archive"
	;;
*)
	if [ "${IMAGE_REQUIRED:-0}" = 1 ] && [ -z "${IMAGE_BINARY_ONLY:-}" ]; then
		echo "image: there is no docker, podman or buildah, and IMAGE_REQUIRED=1 asks for an image" >&2
		exit 1
	fi
	if [ -z "${IMAGE_BINARY_ONLY:-}" ]; then
		echo "image: NO IMAGE BUILT, since there is no docker, podman or buildah that works here; building the binary alone" >&2
	fi
	binary
	exit 0
	;;
esac
state "$image for $platform, built with $builder," "$size"

host=linux/$(uname -m | sed 's/x86_64/amd64/; s/aarch64/arm64/')
if [ "$platform" != "$host" ]; then
	echo "image: NOT TRIED, since this machine is $host" >&2
elif [ "$builder" = buildah ]; then
	try_buildah
else
	try_engine
fi
