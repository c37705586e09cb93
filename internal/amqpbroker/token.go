package amqpbroker

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
)

// A token is what $cbs is given for one entity.
type token struct {
	kind, text string
	// expires is zero for a token whose end is not known.
	expires time.Time
}

// A tokenSource makes a token for an audience.
type tokenSource func(ctx context.Context, audience string) (token, error)

const (
	kindSAS = "servicebus.windows.net:sastoken"
	kindJWT = "jwt"
)

// keyLife is how long a token that is signed here is good.
const keyLife = 2 * time.Hour

// signed makes tokens with a shared access key.
func signed(name, key string) tokenSource {
	return func(_ context.Context, audience string) (token, error) {
		expires := time.Now().Add(keyLife).Truncate(time.Second)
		resource := strings.ToLower(url.QueryEscape(audience))
		end := strconv.FormatInt(expires.Unix(), 10)
		mac := hmac.New(sha256.New, []byte(key))
		mac.Write([]byte(resource + "\n" + end))
		signature := url.QueryEscape(base64.StdEncoding.EncodeToString(mac.Sum(nil)))
		text := "SharedAccessSignature sr=" + resource + "&sig=" + signature + "&se=" + end + "&skn=" + name
		return token{kind: kindSAS, text: text, expires: expires}, nil
	}
}

// fixed gives a signature that somebody else made.
func fixed(signature string) tokenSource {
	return func(context.Context, string) (token, error) { return token{kind: kindSAS, text: signature}, nil }
}

// scope is what a token of Microsoft Entra ID is asked for. The double slash belongs there.
const scope = "https://servicebus.azure.net//.default"

// fromCredential asks Microsoft Entra ID.
func fromCredential(credential azcore.TokenCredential) tokenSource {
	return func(ctx context.Context, _ string) (token, error) {
		t, err := credential.GetToken(ctx, policy.TokenRequestOptions{Scopes: []string{scope}})
		return token{kind: kindJWT, text: t.Token, expires: t.ExpiresOn}, err
	}
}

// expiry is the text that goes with a token.
func (t token) expiry() string {
	if t.expires.IsZero() {
		return "0"
	}
	return strconv.FormatInt(t.expires.Unix(), 10)
}

// renewAt is when a token should be replaced: well before its end, and in the middle of a short life.
func (t token) renewAt(now time.Time) time.Time {
	if t.expires.IsZero() {
		return now.AddDate(1, 0, 0)
	}
	left := t.expires.Sub(now)
	return now.Add(left - min(left/2, 10*time.Minute))
}
