// Package connstring reads connection strings of Service Bus. The client reads them itself, but tells nobody what is in them.
package connstring

import (
	"errors"
	"net"
	"net/url"
	"strconv"
	"strings"
)

// A ConnectionString is what the text says. Parts that are not known are left out.
type ConnectionString struct {
	// Host is the host of the endpoint, with its port if it names one.
	Host string
	// KeyName and Key, or Signature, are the credential.
	KeyName, Key, Signature string
	// EntityPath is the queue that the credential is for, empty for a whole namespace.
	EntityPath string
	// Emulator says that there is no TLS.
	Emulator bool
}

// The faults of a text. They never repeat any of it, since it holds a secret.
var (
	ErrEndpoint   = errors.New("it has no Endpoint=sb://... part")
	ErrCredential = errors.New("it has no SharedAccessKeyName and SharedAccessKey")
)

// Parse reads a text and reports every fault, joined.
func Parse(text string) (ConnectionString, error) {
	parts := map[string]string{}
	for part := range strings.SplitSeq(text, ";") {
		name, value, _ := strings.Cut(part, "=")
		parts[strings.ToLower(strings.TrimSpace(name))] = value
	}
	c := ConnectionString{
		KeyName: parts["sharedaccesskeyname"], Key: parts["sharedaccesskey"], Signature: parts["sharedaccesssignature"], EntityPath: parts["entitypath"],
	}
	c.Emulator, _ = strconv.ParseBool(parts["usedevelopmentemulator"])
	u, err := url.Parse(parts["endpoint"])
	if err != nil || u.Hostname() == "" || u.Scheme != "sb" {
		return c, ErrEndpoint
	}
	c.Host = u.Host
	if c.Signature == "" && (c.KeyName == "" || c.Key == "") {
		return c, ErrCredential
	}
	return c, nil
}

// Hostname is the host without a port.
func (c ConnectionString) Hostname() string {
	return (&url.URL{Host: c.Host}).Hostname()
}

// Address is host and port, where the port is that of AMQP with or without TLS unless the endpoint names one.
func (c ConnectionString) Address() string {
	port := (&url.URL{Host: c.Host}).Port()
	switch {
	case port != "":
	case c.Emulator:
		port = "5672"
	default:
		port = "5671"
	}
	return net.JoinHostPort(c.Hostname(), port)
}
