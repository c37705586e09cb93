#!/bin/sh
# Runs azcosmos' own emulator tests against the embedded Cosmos DB, from wherever it is called. README.md says more.
cd "$(dirname "$0")/../.." && exec go run ./testenv/conformance "$@"
