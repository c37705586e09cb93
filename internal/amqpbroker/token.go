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

type tokenSource interface {
	token(ctx context.Context, audience string) (token, error)
}

const (
	kindSAS = "servicebus.windows.net:sastoken"
	kindJWT = "jwt"
)

// keyLife is how long a token that is signed here is good.
const keyLife = 2 * time.Hour

// keyToken signs tokens with a shared access key.
type keyToken struct{ name, key string }

func (k keyToken) token(_ context.Context, audience string) (token, error) {
	expires := time.Now().Add(keyLife).Truncate(time.Second)
	resource := strings.ToLower(url.QueryEscape(audience))
	end := strconv.FormatInt(expires.Unix(), 10)
	mac := hmac.New(sha256.New, []byte(k.key))
	mac.Write([]byte(resource + "\n" + end))
	signature := url.QueryEscape(base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	text := "SharedAccessSignature sr=" + resource + "&sig=" + signature + "&se=" + end + "&skn=" + k.name
	return token{kind: kindSAS, text: text, expires: expires}, nil
}

// fixedToken is a signature that somebody else made.
type fixedToken struct{ text string }

func (f fixedToken) token(context.Context, string) (token, error) {
	return token{kind: kindSAS, text: f.text}, nil
}

// scope is what a token of Microsoft Entra ID is asked for. The double slash belongs there.
const scope = "https://servicebus.azure.net//.default"

// credentialToken asks Microsoft Entra ID.
type credentialToken struct{ credential azcore.TokenCredential }

func (c credentialToken) token(ctx context.Context, _ string) (token, error) {
	t, err := c.credential.GetToken(ctx, policy.TokenRequestOptions{Scopes: []string{scope}})
	return token{kind: kindJWT, text: t.Token, expires: t.ExpiresOn}, err
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
