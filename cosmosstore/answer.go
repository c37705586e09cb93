package cosmosstore

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"math"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/orderworker/orderworker/internal/tokenerror"
)

// The headers of a reply that the store reads, in the form in which net/http keeps them.
const (
	headerSubstatus    = "X-Ms-Substatus"
	headerActivity     = "X-Ms-Activity-Id"
	headerCharge       = "X-Ms-Request-Charge"
	headerSessionToken = "X-Ms-Session-Token"
	headerRetryAfter   = "X-Ms-Retry-After-Ms"
)

// failure says why there is no HTTP answer.
type failure int

const (
	answered       failure = iota
	notSent                // no connection: the request cannot have had an effect
	broken                 // the connection failed after the request may have been sent
	timedOut               // the time was up, or the caller gave up
	noToken                // the credential gave no token
	severalRegions         // the store itself refused to send a write, see requestPolicy
)

// answer is what one operation got, as plain values.
type answer struct {
	failure    failure
	status     int
	substatus  int
	retryAfter time.Duration
	activity   string
	// text says for people what happened when there is no status.
	text string
	// explanation is what the service says of a 401 or 403.
	explanation explanation
}

// answerTo reads an error of azcosmos, or of the transport below it. It is the only place that looks inside such errors.
// Nothing of it quotes a URL or a body: both hold the ids of messages.
func answerTo(err error) answer {
	if e, ok := errors.AsType[*tokenError](err); ok {
		return answer{failure: noToken, text: "no token for the account: " + tokenerror.Text(e.error)}
	}
	if e, ok := errors.AsType[*azcore.ResponseError](err); ok {
		if e.RawResponse == nil {
			return answer{status: e.StatusCode}
		}
		return answerOf(e.RawResponse)
	}
	switch {
	case errors.Is(err, errSeveralRegions):
		return answer{failure: severalRegions, text: err.Error()}
	case unsent(err):
		return answer{failure: notSent, text: "no connection to the account: " + plainText(err)}
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return answer{failure: timedOut, text: "no answer in time"}
	}
	return answer{failure: broken, text: "the connection to the account broke: " + plainText(err)}
}

func answerOf(r *http.Response) answer {
	return answer{
		status:     r.StatusCode,
		substatus:  number(r.Header.Get(headerSubstatus)),
		retryAfter: time.Duration(number(r.Header.Get(headerRetryAfter))) * time.Millisecond,
		activity:   r.Header.Get(headerActivity),

		explanation: explained(r),
	}
}

// number reads a header that holds a number of at least zero. Anything else counts as zero.
func number(s string) int {
	if s == "" {
		return 0 // the commonest case, and an error would cost memory
	}
	n, err := strconv.Atoi(strings.TrimSpace(s))
	if err != nil || n < 0 {
		return 0
	}
	return n
}

// charge reads the request charge. What is no number of at least zero counts as zero: one NaN would spoil every sum after it.
func charge(h http.Header) float64 {
	f, err := strconv.ParseFloat(strings.TrimSpace(h.Get(headerCharge)), 64)
	if err != nil || math.IsNaN(f) || math.IsInf(f, 0) || f < 0 {
		return 0
	}
	return f
}

// unsent reports whether an error proves that no byte of the request was sent.
func unsent(err error) bool {
	if e, ok := errors.AsType[*net.OpError](err); ok && e.Op == "dial" {
		return true
	}
	if _, ok := errors.AsType[*net.DNSError](err); ok {
		return true
	}
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return true
	}
	if _, ok := errors.AsType[tls.RecordHeaderError](err); ok {
		return true
	}
	return errors.Is(err, syscall.ECONNREFUSED)
}

// plainText is the innermost text of a transport error, without the URL that net/http puts in front.
func plainText(err error) string {
	for {
		e, ok := errors.AsType[*url.Error](err)
		if !ok {
			break
		}
		err = e.Err
	}
	if strings.Contains(err.Error(), "://") {
		return fmt.Sprintf("%T", err)
	}
	return err.Error()
}

// String is the answer for people and logs.
func (a answer) String() string {
	if a.failure != answered {
		return a.text
	}
	s := strconv.Itoa(a.status)
	if a.substatus != 0 {
		s += "/" + strconv.Itoa(a.substatus)
	}
	if text := http.StatusText(a.status); text != "" {
		s += " " + text
	}
	if a.activity != "" {
		s += ", activity " + a.activity
	}
	if a.explanation.said != "" {
		s += ", " + strconv.Quote(a.explanation.said)
	}
	return s
}
