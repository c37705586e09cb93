#!/usr/bin/env bash
# The scenarios of testenv/e2e against Microsoft's emulators, started with docker compose and removed afterwards.
# The key is the one that every emulator of Cosmos DB has.
set -euo pipefail
cd "$(dirname "$0")/.."
compose=(docker compose -f testenv/compose.yaml)
trap '"${compose[@]}" down -v' EXIT
"${compose[@]}" up -d --wait
for address in http://127.0.0.1:5300/health http://127.0.0.1:18080/ready; do
	curl -fsS --retry 60 --retry-delay 2 --retry-all-errors -o /dev/null "$address"
done
export SERVICEBUS_CONNECTION_STRING='Endpoint=sb://127.0.0.1;SharedAccessKeyName=RootManageSharedAccessKey;SharedAccessKey=SAS_KEY_VALUE;UseDevelopmentEmulator=true;'
export COSMOS_ENDPOINT=http://127.0.0.1:8081 ORDERWORKER_EMULATOR=vnext
export COSMOS_KEY='C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw=='
go test -tags official -run Official -v ./testenv/e2e
