package cosmosstore

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"syscall"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/stretchr/testify/require"

	"github.com/orderworker/orderworker/worker"
)

func TestClassifyEveryStatusOnEveryOperation(t *testing.T) {
	ops := []operation{opCreate, opBatch, opBatchCreate, opRead, opReadContainer}
	tests := []struct {
		name              string
		status, substatus int
		want              [5]class // in the order of ops
	}{
		{"200 is good for a read and a batch alone", 200, 0, [5]class{unexpected, done, unexpected, done, done}},
		{"201 is good for a create alone", 201, 0, [5]class{done, unexpected, done, unexpected, unexpected}},
		{"204 is no answer to any of them", 204, 0, [5]class{unexpected, unexpected, unexpected, unexpected, unexpected}},
		{"304 counts as success for azcosmos, and says nothing", 304, 0, [5]class{unexpected, unexpected, unexpected, unexpected, unexpected}},
		{"302 comes from something in between", 302, 0, [5]class{unexpected, unexpected, unexpected, unexpected, unexpected}},
		{"400 is refused, for whatever cause", 400, 0, [5]class{refused, refused, refused, refused, refused}},
		{"400/1001 is a wrong partition key", 400, 1001, [5]class{misconfigured, misconfigured, misconfigured, refused, refused}},
		{"401 may be this id or the key", 401, 0, [5]class{refused, refused, refused, refused, refused}},
		{"403 is a missing role or a firewall", 403, 0, [5]class{misconfigured, misconfigured, misconfigured, misconfigured, misconfigured}},
		{"403/3 is a fail-over", 403, 3, [5]class{unavailable, unavailable, unavailable, unavailable, unavailable}},
		{"403/1008 is a fail-over", 403, 1008, [5]class{unavailable, unavailable, unavailable, unavailable, unavailable}},
		{"403/1014 is a full partition", 403, 1014, [5]class{partitionFull, partitionFull, partitionFull, partitionFull, partitionFull}},
		{"403/5300 is an operation that a token may not do", 403, 5300, [5]class{misconfigured, misconfigured, misconfigured, misconfigured, misconfigured}},
		{"404 is absent for a read and a missing container for others", 404, 0, [5]class{misconfigured, misconfigured, misconfigured, absent, misconfigured}},
		{"404/1002 is a replica behind", 404, 1002, [5]class{unavailable, unavailable, unavailable, lagging, unavailable}},
		{"404/1003 is a missing container", 404, 1003, [5]class{misconfigured, misconfigured, misconfigured, misconfigured, misconfigured}},
		{"404/1013 is a container being created", 404, 1013, [5]class{unavailable, unavailable, unavailable, unavailable, unavailable}},
		{"408 may have happened", 408, 0, [5]class{ambiguous, ambiguous, ambiguous, unavailable, unavailable}},
		{"409 is an existing document", 409, 0, [5]class{exists, unexpected, exists, unexpected, unexpected}},
		{"410/1002 may have happened", 410, 1002, [5]class{ambiguous, ambiguous, ambiguous, unavailable, unavailable}},
		{"410/1007 is a partition being split", 410, 1007, [5]class{ambiguous, ambiguous, ambiguous, unavailable, unavailable}},
		{"410/21010 is a partition moving", 410, 21010, [5]class{ambiguous, ambiguous, ambiguous, unavailable, unavailable}},
		{"412 answers a condition that nobody set", 412, 0, [5]class{refused, refused, refused, refused, refused}},
		{"413 is too large", 413, 0, [5]class{tooLarge, tooLarge, tooLarge, refused, refused}},
		{"424 is another operation's failure", 424, 0, [5]class{unexpected, unexpected, rolledBack, unexpected, unexpected}},
		{"429 is throttled", 429, 3200, [5]class{unavailable, unavailable, unavailable, unavailable, unavailable}},
		{"449 asks for another try", 449, 0, [5]class{contended, contended, contended, contended, contended}},
		{"500 may have happened", 500, 0, [5]class{ambiguous, ambiguous, ambiguous, unavailable, unavailable}},
		{"502 may have happened", 502, 0, [5]class{ambiguous, ambiguous, ambiguous, unavailable, unavailable}},
		{"503 may have happened", 503, 0, [5]class{ambiguous, ambiguous, ambiguous, unavailable, unavailable}},
		{"504 may have happened", 504, 0, [5]class{ambiguous, ambiguous, ambiguous, unavailable, unavailable}},
		{"507 may have happened", 507, 0, [5]class{ambiguous, ambiguous, ambiguous, unavailable, unavailable}},
		{"an unknown 4xx is refused", 418, 0, [5]class{refused, refused, refused, refused, refused}},
		{"no status at all says nothing", 0, 0, [5]class{unexpected, unexpected, unexpected, unexpected, unexpected}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for i, op := range ops {
				require.Equal(t, tt.want[i], classify(op, answer{status: tt.status, substatus: tt.substatus}), "%s", op)
			}
		})
	}
}

func TestClassifyEveryFailureOfTheTransport(t *testing.T) {
	at := func(err error) error {
		return &url.Error{Op: "Post", URL: "https://a/dbs/d/colls/c/docs/secret-id", Err: err}
	}
	tests := []struct {
		name        string
		err         error
		write, read class
	}{
		{"refused connection", at(&net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}), unavailable, unavailable},
		{"connect timeout", at(&net.OpError{Op: "dial", Net: "tcp", Err: context.DeadlineExceeded}), unavailable, unavailable},
		{"unknown host", at(&net.DNSError{Err: "no such host", Name: "a"}), unavailable, unavailable},
		{"untrusted certificate", at(&tls.CertificateVerificationError{Err: x509.UnknownAuthorityError{}}), unavailable, unavailable},
		{"plain text where TLS was expected", at(tls.RecordHeaderError{Msg: "first record does not look like TLS"}), unavailable, unavailable},
		{"connection reset", final{at(&net.OpError{Op: "read", Err: syscall.ECONNRESET})}, ambiguous, unavailable},
		{"end of file", final{at(io.EOF)}, ambiguous, unavailable},
		{"reset HTTP/2 stream", final{errors.New("stream error: stream ID 3; INTERNAL_ERROR")}, ambiguous, unavailable},
		{"malformed reply", at(errors.New("malformed HTTP response")), ambiguous, unavailable},
		{"end of the time of one request", final{at(context.DeadlineExceeded)}, ambiguous, unavailable},
		{"end of the caller's time", fmt.Errorf("%w: underlying transport error: secret-id", context.DeadlineExceeded), ambiguous, unavailable},
		{"caller gave up", context.Canceled, ambiguous, unavailable},
		{"no token", &tokenError{errors.New("no managed identity here\nGET https://login/secret-id")}, unavailable, unavailable},
		{"several write regions", errSeveralRegions, misconfigured, misconfigured},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			a := answerTo(tt.err)
			require.Equal(t, tt.write, classify(opCreate, a))
			require.Equal(t, tt.write, classify(opBatch, a))
			require.Equal(t, tt.read, classify(opRead, a))
			require.NotEmpty(t, a.String())
			require.NotContains(t, a.String(), "secret-id", "no URL, and so no id of a message, is in a text")
		})
	}
}

func TestErrorsOfTheEngineCarryWhatItNeeds(t *testing.T) {
	t.Run("a throttled store names its wait", func(t *testing.T) {
		r := &http.Response{StatusCode: 429, Header: http.Header{}}
		r.Header.Set(headerRetryAfter, "1500")
		r.Header.Set(headerActivity, "act-1")
		a := answerTo(&azcore.ResponseError{StatusCode: 429, RawResponse: r})
		u, ok := errors.AsType[*worker.UnavailableError](storeError(opCreate, classify(opCreate, a), a, false))
		require.True(t, ok)
		require.Equal(t, 1500*time.Millisecond, u.RetryAfter)
		require.False(t, u.Ambiguous)
		require.Contains(t, u.Error(), "429 Too Many Requests, activity act-1")
	})
	t.Run("a hint without sense is no hint", func(t *testing.T) {
		for _, hint := range []string{"", "0", "-5", "soon", "99999999999999999999"} {
			r := &http.Response{StatusCode: 429, Header: http.Header{}}
			r.Header.Set(headerRetryAfter, hint)
			require.Zero(t, answerOf(r).retryAfter, "%q", hint)
		}
	})
	t.Run("a charge without sense is no charge", func(t *testing.T) {
		for text, want := range map[string]float64{"5.29": 5.29, "": 0, "-1": 0, "NaN": 0, "Inf": 0, "1e400": 0, "much": 0} {
			require.Equal(t, want, charge(http.Header{"X-Ms-Request-Charge": {text}}), "%q", text)
		}
	})
	t.Run("every misconfiguration names a fix", func(t *testing.T) {
		for _, a := range []answer{
			{status: 401}, {status: 403}, {status: 403, substatus: 5300}, {status: 404}, {status: 400, substatus: 1001}, {failure: severalRegions},
		} {
			m, ok := errors.AsType[*worker.MisconfiguredError](storeError(opCreate, misconfigured, a, false))
			require.True(t, ok)
			require.Greater(t, len(m.Fix), 30, "%v", a)
		}
	})
	t.Run("a clock that is wrong is named, whichever status shows it", func(t *testing.T) {
		for _, status := range []int{401, 403} {
			require.Contains(t, fixFor(opRead, answer{status: status}), "clock of this machine")
		}
	})
	t.Run("a probe that finds nothing is a good answer", func(t *testing.T) {
		require.NoError(t, probeError(opRead, answer{status: 404}))
		require.NoError(t, probeError(opRead, answer{status: 200}))
		require.ErrorAs(t, probeError(opRead, answer{status: 401}), new(*worker.MisconfiguredError))
		require.ErrorAs(t, probeError(opRead, answer{status: 400}), new(*worker.UnavailableError))
		require.ErrorAs(t, probeError(opRead, answer{status: 503}), new(*worker.UnavailableError))
		require.ErrorAs(t, probeError(opReadContainer, answer{status: 404}), new(*worker.MisconfiguredError))
	})
}
