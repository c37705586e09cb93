# Everything that a person or CI runs. Only Go is needed for run and test.
GO ?= go
export GOFLAGS ?= -trimpath
# The race detector needs a C compiler, without which Go switches cgo off by itself.
RACE ?= $(if $(filter 1,$(shell $(GO) env CGO_ENABLED)),-race)

.DEFAULT_GOAL := help
.PHONY: help run test build env lint vet tidy check fuzz torture bench conformance clients walk infra image official vulnerabilities release-build release-dry-run clean

help: ## Show the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

run: build ## The main job on the embedded environment: a small stream of messages and what became of each
	@./bin/devenv demo

test: ## The whole suite with the race detector
	@$(if $(RACE),,echo "test: WITHOUT the race detector, which needs a C compiler" >&2)
	$(GO) test $(RACE) -shuffle=on ./...

build: ## Build the programs into bin/
	@mkdir -p bin
	$(GO) build -o bin/ ./cmd/...

env: build ## The embedded Service Bus and Cosmos DB alone, until Ctrl-C
	@./bin/devenv

lint: ## Linters; the versions are in tools/go.mod
	$(GO) tool -modfile=tools/go.mod golangci-lint run ./...
	$(GO) tool -modfile=tools/go.mod actionlint

vet: ## gofmt and go vet
	@test -z "$$(gofmt -l . | tee /dev/stderr)"
	$(GO) vet ./...

tidy: ## go.mod and go.sum say just what is used
	$(GO) mod tidy -diff
	$(GO) mod verify

fuzz: ## Each fuzz target for FUZZTIME (10s)
	./scripts/fuzz.sh $(or $(FUZZTIME),10s)

torture: build ## Kill and break real processes for MINUTES (1) with SEED, and check the promise
	@./bin/devenv torture --minutes $(or $(MINUTES),1) $(if $(SEED),--seed $(SEED))

bench: ## Throughput, round trips and request charge against a bare loop
	$(GO) test -run '^$$' -bench . -benchtime 1x ./testenv/bench

conformance: ## The Go clients' own tests against the embedded Service Bus and Cosmos DB
	./testenv/conformance/run.sh

clients: build ## JavaScript, Python and Java clients against devenv, where their runtimes are
	./scripts/clients.sh

walk: ## Count the functions and files that one message passes, and one dead letter
	./scripts/walk.sh

infra: ## Compile and lint the templates, check formatting and snapshot
	./scripts/infra-check.sh

image: ## Build the container image with docker, podman or buildah
	./scripts/image.sh

official: ## The scenarios against Microsoft's emulators, by docker compose
	./scripts/official.sh

vulnerabilities: ## Known vulnerabilities that the code reaches; asks vuln.go.dev
	$(GO) run golang.org/x/vuln/cmd/govulncheck@v1.1.4 ./...

release-build: ## The archives of the release VERSION, its checksums and changes, in dist/
	VERSION=$(VERSION) ./scripts/release.sh

release-dry-run: ## The same for a commit without a tag; needs no network
	VERSION= ./scripts/release.sh

check: vet tidy build test lint infra ## All that CI runs

clean: ## Remove what was built
	rm -rf bin dist
