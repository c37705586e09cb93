package cosmosdb

import (
	"net/http"
	"slices"
	"strings"
)

// The headers that narrow a request to some documents, or say what it does. A request that carries one of these and is
// answered as if it did not would return other tenants' documents, so that every header of the service's family x-ms- is
// either understood, known to have no influence on the answer, or refused.
const (
	headerStartEPK    = "x-ms-start-epk"
	headerEndEPK      = "x-ms-end-epk"
	headerReadKeyType = "x-ms-read-key-type"
	headerIntendedRID = "x-ms-cosmos-intended-collection-rid"
	headerQueryPlan   = "x-ms-cosmos-is-query-plan-request"
	headerRangeID     = "x-ms-documentdb-partitionkeyrangeid"
)

// understoodHeaders are carried out.
var understoodHeaders = []string{
	headerStartEPK, headerEndEPK, headerReadKeyType, headerIntendedRID, headerQueryPlan, headerRangeID, keyHeader,
	"x-ms-activity-id", "x-ms-consistency-level", "x-ms-continuation", "x-ms-cosmos-batch-atomic",
	"x-ms-cosmos-batch-continue-on-error", "x-ms-cosmos-is-batch-request", "x-ms-cosmos-offer-autopilot-settings",
	"x-ms-cosmos-populateindexmetrics", "x-ms-date", "x-ms-documentdb-is-upsert", "x-ms-documentdb-isquery",
	"x-ms-documentdb-populatequerymetrics", "x-ms-documentdb-query", "x-ms-documentdb-query-enablecrosspartition",
	"x-ms-max-item-count", "x-ms-offer-throughput", "x-ms-session-token",
}

// harmlessHeaders are hints to the service, or tell it who asks. The answer has the same documents without them.
var harmlessHeaders = []string{
	"x-ms-client-id", "x-ms-client-request-id", "x-ms-client-retry-attempt-count", "x-ms-collectionroutingmap-refresh",
	"x-ms-cosmos-allow-tentative-writes", "x-ms-cosmos-apitype", "x-ms-cosmos-batch-ordered", "x-ms-cosmos-correlated-activityid",
	"x-ms-cosmos-hub-region-processing-only", "x-ms-cosmos-populatequeryadvice", "x-ms-cosmos-priority-level",
	"x-ms-cosmos-query-optimisticdirectexecute", "x-ms-cosmos-query-version", "x-ms-cosmos-sdk-supportedcapabilities",
	"x-ms-cosmos-supported-query-features", "x-ms-cosmos-supported-serialization-formats", "x-ms-cosmos-throughput-bucket",
	"x-ms-cosmos-use-thinclient", "x-ms-cosmos-workload-id", "x-ms-dedicatedgateway-bypass-cache", "x-ms-dedicatedgateway-max-age",
	"x-ms-documentdb-disable-ru-per-minute-usage", "x-ms-documentdb-populatepartitionstatistics", "x-ms-documentdb-populatequotainfo",
	"x-ms-documentdb-query-emit-traces", "x-ms-documentdb-query-enable-scan", "x-ms-documentdb-query-iscontinuationexpected",
	"x-ms-documentdb-query-parallelizecrosspartitionquery", "x-ms-documentdb-responsecontinuationtokenlimitinkb",
	"x-ms-force-refresh", "x-ms-is-feed-unfiltered", "x-ms-noretry-449", "x-ms-remaining-time-in-ms-on-client", "x-ms-return-client-request-id",
	"x-ms-thinclient-proxy-operation-type", "x-ms-thinclient-proxy-resource-type",
	"x-ms-useragent", "x-ms-user-agent", "x-ms-version",
}

// unknownHeader returns a header of the request that is not known to be safe to pass over, or "".
func unknownHeader(h http.Header) string {
	for name := range h {
		name = strings.ToLower(name)
		if strings.HasPrefix(name, "x-ms-") && !slices.Contains(understoodHeaders, name) && !slices.Contains(harmlessHeaders, name) {
			return name
		}
	}
	return ""
}

// checkHeadersLocked refuses a request whose headers ask for more than the account can do.
func (a *Account) checkHeadersLocked(q *request) *reply {
	refused := func(what string) *reply {
		r := a.refuseLocked(q, what)
		return &r
	}
	if h := unknownHeader(q.header); h != "" {
		return refused("the header " + h)
	}
	reads := q.resource == documentFeed && (q.isQuery() || q.method == http.MethodGet)
	narrowed := q.header.Get(headerStartEPK) != "" || q.header.Get(headerEndEPK) != "" || q.header.Get(headerReadKeyType) != ""
	if narrowed && !reads {
		return refused("a range of effective partition keys for anything but a query, a list or a change feed")
	}
	if c := a.findContainer(q.database(), q.container()); c != nil {
		if rid := q.header.Get(headerIntendedRID); rid != "" && rid != c.rid {
			r := refuse(http.StatusBadRequest, substatusOtherContainer, "the container was deleted and created again: its _rid is "+c.rid+", not "+rid)
			return &r
		}
	}
	return nil
}
