package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"

	"github.com/orderworker/orderworker/worker"
)

// provider is a payment provider over HTTP.
type provider struct {
	url    string
	client *http.Client
}

// charge charges a card and returns the id of the charge.
func (p provider) charge(ctx context.Context, key string, pay payment) (string, error) {
	body, err := json.Marshal(pay)
	if err != nil {
		return "", err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.url+"/charges", bytes.NewReader(body))
	if err != nil {
		return "", err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Idempotency-Key", key)
	id, status, err := p.do(req)
	switch {
	case notSent(err):
		return "", err
	case err != nil, status >= 500:
		return "", worker.InDoubt(fmt.Errorf("the provider answered %d: %w", status, err))
	case status == http.StatusPaymentRequired:
		return "", worker.Reject("CardDeclined", errors.New("the provider declined the card"))
	case status != http.StatusCreated && status != http.StatusOK:
		return "", fmt.Errorf("the provider refused the charge with %d", status)
	}
	return id, nil
}

// find returns the id of the charge with this key, or "".
func (p provider) find(ctx context.Context, key string) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, p.url+"/charges?key="+url.QueryEscape(key), nil)
	if err != nil {
		return "", err
	}
	id, status, err := p.do(req)
	if err == nil && status != http.StatusOK && status != http.StatusNotFound {
		err = fmt.Errorf("the provider answered %d", status)
	}
	return id, err
}

func (p provider) do(req *http.Request) (id string, status int, err error) {
	resp, err := p.client.Do(req)
	if err != nil {
		return "", 0, err
	}
	defer resp.Body.Close()
	var charge struct{ ID string }
	if resp.StatusCode < 300 {
		if err = json.NewDecoder(resp.Body).Decode(&charge); err == nil && charge.ID == "" {
			err = errors.New("the answer names no charge")
		}
	}
	return charge.ID, resp.StatusCode, err
}

// notSent reports whether an error says that there was no connection, so that no request can have arrived.
func notSent(err error) bool {
	e, ok := errors.AsType[*net.OpError](err)
	return ok && e.Op == "dial"
}
