package cosmosstore

import (
	"cmp"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/tracing"

	"github.com/orderworker/orderworker/internal/storable"
)

// Options configure a [Store]. The zero value of a field means its default.
type Options struct {
	// Endpoint is the address of the account, such as https://name.documents.azure.com:443/. Plain http is accepted for
	// loopback addresses only.
	Endpoint string
	// Credential signs in with Microsoft Entra ID. Give either it or Key.
	Credential azcore.TokenCredential
	// Key is the account key.
	Key Key
	// Database and Container name the container that holds the documents.
	Database  string
	Container string

	// Types are the types of the documents that the handler returns, the one of the first document first, as far as they are
	// known. What the container cannot hold is refused at the start then, and otherwise when the first message shows it. Several
	// types count as documents of one message, so a container whose partition key path is /id is refused with them.
	Types []string
	// InboxRecords makes the inbox record a small document of its own, beside the documents of the handler in the same logical
	// partition; otherwise the first document carries it. Use it where the first document is rewritten by others, or where keys
	// are to be forgotten although the documents stay.
	InboxRecords bool
	// InboxRecordTTL removes an inbox record after this time, in whole seconds. Defaults to never.
	InboxRecordTTL time.Duration
	// Lifetime is what is known of the queue. [Open] and [Store.Check] hold InboxRecordTTL against it.
	Lifetime Lifetime

	// ApplicationID names the program in requests, for the diagnostics of the account. azcore sends at most 24 characters of it.
	// Defaults to orderworker.
	ApplicationID string
	// PreferredRegions are passed on to azcosmos. Leave them empty, or name the write region alone: a read from a region
	// that lags behind the write region finds nothing to compare. Defaults to the order of the account.
	PreferredRegions []string
	// RequestTimeout bounds one HTTP request. Defaults to 6s, a little more than the 5s that the service gives an
	// operation.
	RequestTimeout time.Duration
	// OperationTimeout bounds one operation with all requests that azcosmos makes for it. Defaults to 15s.
	OperationTimeout time.Duration
	// ConnectTimeout bounds the reading of account and container before the first operation. Defaults to 20s.
	ConnectTimeout time.Duration

	// RootCAs replaces the authorities that the account's certificate is checked against. Defaults to the system's.
	RootCAs *x509.CertPool
	// Transport replaces the HTTP client. Defaults to one of the store's own.
	Transport policy.Transporter
	// Tracing makes a span of every request, as the child of the span in its context. An answer that the store expects, such as
	// the conflict of a duplicate, is no failure of a span. Defaults to none.
	Tracing tracing.Provider
	// Logger receives what an operator should know. Defaults to none.
	Logger *slog.Logger
}

// A Key is an account key in base64. It does not print.
type Key string

// String returns a placeholder.
func (k Key) String() string {
	if k == "" {
		return ""
	}
	return "<redacted>"
}

// GoString returns a placeholder.
func (k Key) GoString() string { return fmt.Sprintf("%q", k.String()) }

// LogValue returns a placeholder.
func (k Key) LogValue() slog.Value { return slog.StringValue(k.String()) }

func (o Options) withDefaults() Options {
	o.ApplicationID = cmp.Or(o.ApplicationID, "orderworker")
	o.RequestTimeout = cmp.Or(o.RequestTimeout, 6*time.Second)
	o.OperationTimeout = cmp.Or(o.OperationTimeout, 15*time.Second)
	o.ConnectTimeout = cmp.Or(o.ConnectTimeout, 20*time.Second)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}

// An OptionError is a fault of one field of [Options].
type OptionError struct {
	// Option is the name of the field, such as "Endpoint".
	Option string
	// Problem is a sentence that names the field in words.
	Problem string
}

func (e *OptionError) Error() string { return "cosmosstore: " + e.Problem }

// Validate returns every fault at once as an [OptionError], joined by [errors.Join], as [Open] does before it asks the account
// for anything.
func (o Options) Validate() error { return o.withDefaults().validate() }

// validate expects the defaults to be filled in.
func (o Options) validate() error {
	var errs []error
	bad := func(option, format string, args ...any) {
		errs = append(errs, &OptionError{option, fmt.Sprintf(format, args...)})
	}
	if problem := endpointProblem(o.Endpoint); problem != "" {
		bad("Endpoint", "%s", problem)
	}
	switch {
	case o.Key == "" && o.Credential == nil:
		bad("Credential", "no way to sign in: give a credential, or a key")
	case o.Key != "" && o.Credential != nil:
		bad("Credential", "both a key and a credential are given: give one of them")
	}
	if _, err := base64.StdEncoding.DecodeString(string(o.Key)); err != nil {
		bad("Key", "the account key is not base64: copy it whole")
	}
	o.validateNames(bad)
	if o.RequestTimeout < 0 {
		bad("RequestTimeout", "request timeout %v is negative", o.RequestTimeout)
	}
	if o.ConnectTimeout < 0 {
		bad("ConnectTimeout", "connect timeout %v is negative", o.ConnectTimeout)
	}
	if o.OperationTimeout < o.RequestTimeout {
		bad("OperationTimeout", "operation timeout %v is shorter than request timeout %v", o.OperationTimeout, o.RequestTimeout)
	}
	if o.InboxRecordTTL != 0 && !o.InboxRecords {
		bad("InboxRecordTTL", "inbox record TTL %v is given, but inbox records are off", o.InboxRecordTTL)
	}
	if problem := storable.TTLProblem(o.InboxRecordTTL); problem != "" {
		bad("InboxRecordTTL", "inbox record TTL %s", problem)
	}
	if l := o.Lifetime; l.Lock < 0 || l.Deliveries < 0 || l.TimeToLive < 0 || l.Review < 0 {
		bad("Lifetime", "lifetime %+v has a negative part", l)
	}
	return errors.Join(errs...)
}

func (o Options) validateNames(bad func(option, format string, args ...any)) {
	for _, n := range []struct{ option, words, value string }{{"Database", "database", o.Database}, {"Container", "container", o.Container}} {
		if n.value == "" {
			bad(n.option, "%s is missing", n.words)
		} else if strings.ContainsAny(n.value, `/\?#"%`) || strings.TrimSpace(n.value) != n.value {
			bad(n.option, "%s %q holds a character that such a name cannot hold", n.words, n.value)
		}
	}
	for _, name := range o.Types {
		if problem := typeProblem(name, o.InboxRecords); problem != "" {
			bad("Types", "type %q %s", name, problem)
		}
	}
}

// endpointProblem says what is wrong with the address of an account, or "".
func endpointProblem(endpoint string) string {
	if endpoint == "" {
		return "endpoint is missing"
	}
	u, err := url.Parse(endpoint)
	switch {
	case err != nil || u.Host == "" || u.Hostname() == "":
		return "endpoint is no URL such as https://name.documents.azure.com:443/"
	case u.User != nil || u.RawQuery != "" || u.Fragment != "" || strings.Trim(u.Path, "/") != "":
		return "endpoint must be scheme, host and port alone"
	case u.Scheme == "https", u.Scheme == "http" && Loopback(u.Hostname()):
		return ""
	case u.Scheme == "http":
		return fmt.Sprintf("endpoint %s would send credentials unencrypted: use https, http is for loopback addresses", u.Host)
	}
	return fmt.Sprintf("endpoint scheme %q is not https", u.Scheme)
}

// Loopback reports whether a host is this machine by its name or address, without asking a name server. It is the rule for
// where keys and plain connections are acceptable.
func Loopback(host string) bool {
	ip := net.ParseIP(host)
	return strings.EqualFold(host, "localhost") || (ip != nil && ip.IsLoopback())
}
