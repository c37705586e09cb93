#!/usr/bin/env bash
# Builds the container image with docker, podman or buildah, whichever is there, and states its size; fails above the
# bound. Without any of them it builds the binary alone, with the Dockerfile's own go build line, and states that size.
#
#   scripts/image.sh                       orderworker:dev for linux/amd64
#   IMAGE=name:tag PLATFORM=linux/arm64 scripts/image.sh
#   IMAGE_BINARY_ONLY=1 scripts/image.sh   no image, even if there is a builder
#   IMAGE_REQUIRED=1 scripts/image.sh      the absence of a builder is a failure
set -euo pipefail
cd "$(dirname "$0")/.."

image=${IMAGE:-orderworker:dev}
platform=${PLATFORM:-linux/amd64}
bound=$((25 * 1000 * 1000))
version=${VERSION:-$(git describe --tags --always --dirty 2>/dev/null || echo dev)}
revision=$(git rev-parse HEAD 2>/dev/null || echo unknown)
# The time of the commit, not of the build: the same sources give the same image.
created=$(git log -1 --format=%cI 2>/dev/null || echo unknown)

if [ -z "$(ls cmd/orderworker/*.go 2>/dev/null)" ]; then
	echo "image: SKIPPED, since there is no ./cmd/orderworker" >&2
	exit 0
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
	trap 'rm -rf "$out"' EXIT
	line=$(sed -n 's/^ *\(go build .*\)$/\1/p' Dockerfile)
	line=${line//\$\{VERSION\}/$version}
	line=${line//\/out\//$out/}
	CGO_ENABLED=0 GOOS=${platform%%/*} GOARCH=${platform##*/} bash -c "$line"
	if command -v file >/dev/null && ! file "$out/orderworker" | grep -q 'statically linked'; then
		echo "image: the binary is not static" >&2
		exit 1
	fi
	state "the binary for $platform" "$(stat -c %s "$out/orderworker" 2>/dev/null || stat -f %z "$out/orderworker")"
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

arguments=(--platform "$platform" -t "$image" --build-arg "VERSION=$version" --build-arg "REVISION=$revision" --build-arg "CREATED=$created")
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
	buildah build --format docker "${arguments[@]}" .
	size=$(buildah inspect --type image --format '{{.Docker.Size}}' "$image")
	;;
*)
	if [ "${IMAGE_REQUIRED:-0}" = 1 ]; then
		echo "image: there is no docker, podman or buildah, and IMAGE_REQUIRED=1 asks for an image" >&2
		exit 1
	fi
	echo "image: NO IMAGE BUILT, since there is no docker, podman or buildah that works here; building the binary alone" >&2
	binary
	exit 0
	;;
esac
state "$image for $platform, built with $builder," "$size"
