package cosmosstore

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http"
	"time"
)

// newHTTPClient returns an HTTP client of the store's own. That of azcosmos belongs to the whole process, and cuts a
// request only after 65 s. There is no timeout here: requestPolicy bounds every request.
//
// HTTP/2 connections are pinged when nothing has been read for a while, so that one that died in silence is found within
// five seconds.
func newHTTPClient(roots *x509.CertPool) *http.Client {
	dialer := &net.Dialer{Timeout: 5 * time.Second, KeepAlive: 30 * time.Second}
	return &http.Client{
		Transport: &http.Transport{
			Proxy:                 http.ProxyFromEnvironment,
			DialContext:           dialer.DialContext,
			ForceAttemptHTTP2:     true,
			MaxIdleConns:          200,
			MaxIdleConnsPerHost:   100,
			IdleConnTimeout:       90 * time.Second,
			TLSHandshakeTimeout:   5 * time.Second,
			ExpectContinueTimeout: time.Second,
			TLSClientConfig:       &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots},
			HTTP2:                 &http.HTTP2Config{SendPingTimeout: 3 * time.Second, PingTimeout: 2 * time.Second},
		},
		// A redirect would turn a create into a GET, and its answer into a success.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}
