package cosmosdb

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// dateSkew is how far the date of a signature may be from the clock of the service.
const dateSkew = 15 * time.Minute

// authenticate checks who sent a request, and returns the refusal or nil. It knows account keys
// (type=master) and, by option, Microsoft Entra ID tokens (type=aad); resource tokens are not known.
func (a *Account) authenticate(q *request, now time.Time) *reply {
	if !q.compute {
		if r := gatewayVerdict(q); r != nil {
			return r
		}
	}
	header := q.header.Get("Authorization")
	switch {
	case header == "":
		return unauthorized("the request has no Authorization header; sign it with the account key")
	case strings.HasPrefix(header, "type=aad&"):
		if !a.opts.AcceptTokens || !strings.Contains(header, "&sig=") || strings.HasSuffix(header, "&sig=") {
			return unauthorized("this account takes no Microsoft Entra ID tokens; use the account key")
		}
		q.byToken = true
		return nil
	default:
		return a.checkSignature(q, header, now)
	}
}

func (a *Account) checkSignature(q *request, header string, now time.Time) *reply {
	plain, err := url.QueryUnescape(header)
	if err != nil {
		return unauthorized("the Authorization header is not URL-encoded")
	}
	// The signature is base64 and may hold '+', which a query parser would turn into a blank.
	sig, ok := strings.CutPrefix(plain, "type=master&ver=1.0&sig=")
	if !ok {
		return unauthorized("the Authorization header is neither a signature by the account key nor a token")
	}
	got, err := base64.StdEncoding.DecodeString(sig)
	date := q.header.Get("x-ms-date")
	if err != nil || !a.signedBy(q, date, got) {
		return unauthorized("the signature does not fit the request and the account key")
	}
	at, err := http.ParseTime(date)
	if err != nil {
		return unauthorized("x-ms-date is not an HTTP date")
	}
	if d := now.Sub(at); d > dateSkew || d < -dateSkew {
		r := refuse(http.StatusForbidden, 0, "the authorization is not valid at the current time: x-ms-date is more than 15 minutes away from "+now.UTC().Format(http.TimeFormat))
		return &r
	}
	return nil
}

// signedBy reports whether a signature is one that the request may have.
func (a *Account) signedBy(q *request, date string, signature []byte) bool {
	kind, link := signedLink(q.path)
	if q.rid != "" {
		link = q.rid
	}
	if q.resource == partitionDelete { // Python names the partition key as the resource, JavaScript the container
		link = strings.TrimSuffix(link, "/operations/partitionkeydelete")
		return hmac.Equal(signature, a.sign(q, "partitionkey", link, date)) || hmac.Equal(signature, a.sign(q, "colls", link, date))
	}
	return hmac.Equal(signature, a.sign(q, kind, link, date))
}

// sign computes the signature of a request for a resource.
func (a *Account) sign(q *request, kind, link, date string) []byte {
	m := hmac.New(sha256.New, a.key)
	m.Write([]byte(strings.ToLower(q.method) + "\n" + kind + "\n" + link + "\n" + strings.ToLower(date) + "\n\n"))
	return m.Sum(nil)
}

// signedLink returns the resource type and the resource link that a signature covers. For a resource the link is the whole
// path, for a feed it is the owner of the feed; an offer is signed by its id alone, in lower case.
func signedLink(escapedPath string) (kind, link string) {
	// The ids ".", ".." and "" shorten the path, so that what the client signed no longer fits: 401, as in the service.
	path := strings.Trim(escapedPath, "/")
	parts := strings.Split(path, "/")
	if parts[0] == "offers" {
		if len(parts) > 1 {
			link = strings.ToLower(parts[1])
		}
		return "offers", link
	}
	if path == "" {
		return "", ""
	}
	if n := len(parts); n%2 == 0 {
		kind, link = parts[n-2], path
	} else {
		kind, link = parts[n-1], strings.Join(parts[:n-1], "/")
	}
	if u, err := url.PathUnescape(link); err == nil {
		link = u
	}
	return strings.ToLower(kind), link
}

func unauthorized(message string) *reply {
	r := refuse(http.StatusUnauthorized, 0, message)
	return &r
}
