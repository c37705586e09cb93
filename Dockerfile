# Builds without BuildKit too (older docker, podman, buildah): no cache mounts, no here-documents, no syntax line. ACR Tasks,
# which is az acr build, does not understand --platform in a FROM line: see docs/deploy.md for the command that takes it out.
# With BuildKit the compiler runs on the builder's own platform and cross-compiles; elsewhere BUILDPLATFORM is unset.
#
# Another program: --build-arg PACKAGE=./cmd/payments --build-arg TITLE=payments. Docker Hub limits anonymous pulls: a mirror
# is --build-arg GO_IMAGE=registry.example/golang.
ARG GO_VERSION=1.26
ARG GO_IMAGE=docker.io/library/golang
FROM --platform=${BUILDPLATFORM:-linux/amd64} ${GO_IMAGE}:${GO_VERSION}-bookworm AS build
WORKDIR /src
ENV CGO_ENABLED=0 GOFLAGS=-mod=readonly GOTOOLCHAIN=local

# The modules are a layer of their own: a change of code alone does not download them again.
COPY go.mod go.sum ./
RUN go mod download

COPY . .
# No default values here: BuildKit would take them instead of the platform it builds for.
ARG TARGETOS
ARG TARGETARCH
ARG PACKAGE=./cmd/orderworker
ARG VERSION=dev
RUN GOOS="${TARGETOS:-linux}" GOARCH="${TARGETARCH:-$(go env GOARCH)}" \
    go build -trimpath -buildvcs=false -ldflags "-s -w -X main.version=${VERSION}" -o /out/worker ${PACKAGE}

FROM scratch
ARG TITLE=orderworker
ARG VERSION=dev
ARG REVISION=unknown
ARG CREATED=unknown
LABEL org.opencontainers.image.title="${TITLE}" \
      org.opencontainers.image.description="Stores what each message of an Azure Service Bus queue asks for in Azure Cosmos DB, once" \
      org.opencontainers.image.source="https://github.com/orderworker/orderworker" \
      org.opencontainers.image.licenses="MIT" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}" \
      org.opencontainers.image.created="${CREATED}"

# The roots of trust are those of the build image. Nothing else is needed: no shell, no package manager, no time zones.
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY THIRD-PARTY-NOTICES LICENSE /
COPY --from=build /out/worker /worker

# Fits the smallest size that infra/ deploys (0.5 GiB); set it to about 80 % of a larger limit. The number of threads
# follows the CPU limit of the container by itself.
ENV GOMEMLIMIT=400MiB \
    WORKER_HEALTH_ADDRESS=:8080

# A number, since there is no list of users here. The file system may be read-only: nothing is written.
USER 65532:65532
EXPOSE 8080
STOPSIGNAL SIGTERM

# Container Apps and Kubernetes have probes of their own and do not look at this; docker and compose do.
HEALTHCHECK --interval=15s --timeout=10s --start-period=10s --retries=3 CMD ["/worker", "healthcheck"]

# Exec form: a shell as the first process would swallow SIGTERM.
ENTRYPOINT ["/worker"]
CMD ["run"]
