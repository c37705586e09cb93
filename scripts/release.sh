#!/usr/bin/env bash
# Builds the archives of a release into dist/, with their checksums and the list of changes. The same commit gives the same
# archives. Publishing and signing are the release workflow's.
#
#   VERSION=v0.1.0 scripts/release.sh    a release: the commit must carry that tag, and nothing may be changed
#   scripts/release.sh                   a dry run: the version is what git describes
#   PLATFORMS=linux/amd64 scripts/release.sh    of fewer platforms; this machine must be among them
set -euo pipefail
cd "$(dirname "$0")/.."
version=${VERSION:-$(git describe --tags --always --dirty)}
if [ -n "${VERSION:-}" ]; then
	[[ $version =~ ^v0\.[0-9]+\.[0-9]+$ ]] || { echo "release: $version is not v0.N.N" >&2; exit 1; }
	[ "$(git describe --tags --exact-match --match "$version")" = "$version" ] && [ -z "$(git status --porcelain)" ] ||
		{ echo "release: the commit is not the tag $version, or files are changed" >&2; exit 1; }
fi

rm -rf dist
mkdir dist
epoch=$(git log -1 --format=%ct)
for platform in ${PLATFORMS:-linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64 windows/arm64}; do
	os=${platform%/*} arch=${platform#*/}
	name=orderworker_${version}_${os}_$arch
	mkdir "dist/$name"
	CGO_ENABLED=0 GOOS=$os GOARCH=$arch go build -buildvcs=true -trimpath -ldflags "-s -w -X main.version=$version" -o "dist/$name/" ./cmd/orderworker
	cp LICENSE THIRD-PARTY-NOTICES README.md "dist/$name/"
	# Owner, order and time are fixed, so that the archive depends on nothing but the commit.
	tar --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$epoch" -C dist -cf - "$name" | gzip -n >"dist/$name.tar.gz"
	rm -r "dist/$name"
done
(cd dist && sha256sum ./*.tar.gz >SHA256SUMS)

previous=$(git describe --tags --abbrev=0 HEAD^ 2>/dev/null || true)
{
	echo "# Changes of $version"
	echo
	echo "What an operator must know is in CHANGELOG.md. All commits${previous:+ since $previous}:"
	echo
	git log --no-merges --format='- %s (%h)' ${previous:+"$previous..HEAD"}
} >dist/CHANGES.md

# What was built for this machine says which release it is.
host=orderworker_${version}_$(go env GOHOSTOS)_$(go env GOHOSTARCH)
said=$(tar -xzOf "dist/$host.tar.gz" "$host/orderworker" >dist/try && chmod +x dist/try && dist/try version)
rm dist/try
case $said in
"orderworker $version commit $(git rev-parse HEAD) of "*) echo "release: $said" ;;
*) echo "release: the program says $said" >&2; exit 1 ;;
esac
(cd dist && sha256sum --check --quiet SHA256SUMS && ls -l)
