package servicebus

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// sasPrefix begins every shared access signature.
const sasPrefix = "SharedAccessSignature "

// verifySAS checks a shared access signature for an audience: a keyed hash over the resource and the time of expiry, made
// with one of the keys. It returns what the key allows and until when, or what is wrong in the words of the service.
func verifySAS(token, audience string, keys []Key, now time.Time) (Rights, time.Time, string) {
	text, ok := strings.CutPrefix(token, sasPrefix)
	if !ok {
		return 0, time.Time{}, "InvalidToken: the token does not begin with SharedAccessSignature"
	}
	fields := map[string]string{}
	for part := range strings.SplitSeq(text, "&") {
		k, v, _ := strings.Cut(part, "=")
		fields[k] = v
	}
	seconds, err := strconv.ParseInt(fields["se"], 10, 64)
	if err != nil {
		return 0, time.Time{}, "InvalidToken: the expiry se is not a number of seconds"
	}
	expires := time.Unix(seconds, 0)
	if !expires.After(now) {
		return 0, time.Time{}, "ExpiredToken: The token is expired. Expiration time: '" + expires.UTC().Format(time.RFC3339) + "'."
	}
	sig, err := signatureBytes(fields["sig"])
	if err != nil {
		return 0, time.Time{}, "InvalidSignature: the signature is not base64"
	}
	for _, k := range keys {
		if k.Name != fields["skn"] {
			continue
		}
		h := hmac.New(sha256.New, []byte(k.Secret))
		h.Write([]byte(fields["sr"] + "\n" + fields["se"]))
		if !hmac.Equal(h.Sum(nil), sig) {
			return 0, time.Time{}, "InvalidSignature: The token has an invalid signature."
		}
		if !resourceCovers(fields["sr"], audience) {
			return 0, time.Time{}, "InvalidAudience: the token was signed for another resource"
		}
		return k.Rights, expires, ""
	}
	return 0, time.Time{}, "InvalidToken: no key is named " + strconv.Quote(fields["skn"])
}

func signatureBytes(s string) ([]byte, error) {
	plain, err := url.QueryUnescape(s)
	if err != nil {
		return nil, err
	}
	// A plus sign that was not escaped has become a blank.
	return base64.StdEncoding.DecodeString(strings.ReplaceAll(plain, " ", "+"))
}

// resourceCovers reports whether the resource of a token is the audience or a part of its path, whatever the scheme.
func resourceCovers(escaped, audience string) bool {
	plain, err := url.QueryUnescape(escaped)
	if err != nil {
		return false
	}
	return covers(withoutScheme(plain), withoutScheme(audience))
}

// sasHost returns the host for which a token was signed. Clients reach the administration API under another name than the
// one they sign for, because they know no port of it.
func sasHost(token string) string {
	_, rest, _ := strings.Cut(token, "sr=")
	escaped, _, _ := strings.Cut(rest, "&")
	plain, _ := url.QueryUnescape(escaped) // what cannot be read is refused where the signature is checked
	host, _, _ := strings.Cut(withoutScheme(plain), "/")
	return host
}

func withoutScheme(s string) string {
	if _, rest, ok := strings.Cut(s, "://"); ok {
		s = rest
	}
	return lower(s)
}
