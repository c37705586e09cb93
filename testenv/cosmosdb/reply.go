package cosmosdb

import (
	"net/http"
	"strconv"
	"time"

	"github.com/orderworker/orderworker/testenv/cosmosdb/internal/jsondoc"
)

// Substatus codes of the service.
const (
	substatusKeyMismatch       = 1001 // 400: the document's partition key is not that of the request
	substatusSessionUnreached  = 1002 // 404: the replica has not reached the session token
	substatusRangeGone         = 1002 // 410: no such partition key range
	substatusNotServable       = 1004 // 400: the client has to run the query by its plan
	substatusOtherContainer    = 1024 // 400: the container has another _rid than the client believes
	substatusOwnerMissing      = 1003 // 404: the database or container itself is missing
	substatusControlPlaneToken = 5300 // 403: tokens give no right to manage
)

// reply is an answer before it is written to a connection.
type reply struct {
	status    int
	substatus int
	etag      string
	session   string // the session token
	charge    float64
	header    map[string]string
	body      []byte
	mediaType string // defaults to application/json
	message   string // of an error, for the history
}

func (r reply) failed() bool { return r.status >= 400 }

// with sets a header.
func (r reply) with(name, value string) reply {
	h := map[string]string{name: value}
	for n, v := range r.header {
		h[n] = v
	}
	r.header = h
	return r
}

// refuse is an error reply in the form of the service.
func refuse(status, substatus int, message string) reply {
	body := jsondoc.NewObject()
	body.Set("code", errorCode(status))
	body.Set("message", message)
	return reply{status: status, substatus: substatus, body: jsondoc.Encode(body), charge: 1, message: message}
}

// refuseWith is an error reply with one more member in its body.
func refuseWith(status, substatus int, message, name, value string) reply {
	r := refuse(status, substatus, message)
	if body, err := jsondoc.ParseObject(r.body); err == nil {
		body.Set(name, value)
		r.body = jsondoc.Encode(body)
	}
	return r
}

// answer is a successful reply with a resource.
func answer(status int, resource *jsondoc.Object) reply {
	r := reply{status: status, body: jsondoc.Encode(resource), charge: 1}
	r.etag, _ = resource.Text("_etag")
	return r
}

func errorCode(status int) string {
	switch status {
	case http.StatusRequestEntityTooLarge:
		return "RequestEntityTooLarge"
	case http.StatusTooManyRequests:
		return "TooManyRequests"
	case 449:
		return "RetryWith"
	case http.StatusNotFound:
		return "NotFound"
	}
	code := ""
	for _, r := range http.StatusText(status) {
		if r != ' ' && r != '-' {
			code += string(r)
		}
	}
	return code
}

// headers returns the headers of the reply. Every reply of the service carries the charge, the activity and, where there
// is a container, the session token.
func (r reply) headers(activity string) http.Header {
	h := http.Header{}
	h.Set("Content-Type", r.mediaType)
	if r.mediaType == "" {
		h.Set("Content-Type", "application/json")
	}
	h.Set("Date", time.Now().UTC().Format(http.TimeFormat))
	h.Set("x-ms-activity-id", activity)
	h.Set("x-ms-request-charge", strconv.FormatFloat(r.charge, 'f', -1, 64))
	h.Set("x-ms-gatewayversion", "version=2.14.0")
	h.Set("Cache-Control", "no-store, no-cache")
	if r.failed() || r.substatus != 0 {
		h.Set("x-ms-substatus", strconv.Itoa(r.substatus))
	}
	if r.etag != "" {
		h.Set("etag", r.etag)
	}
	if r.session != "" {
		h.Set("x-ms-session-token", r.session)
	}
	for n, v := range r.header {
		h.Set(n, v)
	}
	return h
}
