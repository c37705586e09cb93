package app

import (
	"fmt"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
)

// connector builds the clients of the SDKs from the configuration. One credential serves all of them, so that its tokens
// are cached in one place.
type connector struct {
	config     config
	credential azcore.TokenCredential
	// impatient is for commands that a person waits for: they give up on a broker that does not answer after seconds.
	impatient bool
}

// newConnector needs no network: credentials ask for their first token when they are first used.
func newConnector(c config) (*connector, error) {
	k := &connector{config: c}
	if c.connectionString != "" && c.store.Key != "" {
		return k, nil
	}
	credential, err := azidentity.NewDefaultAzureCredential(nil)
	if err != nil {
		return nil, fmt.Errorf("no identity can be used: %w. Check AZURE_CLIENT_ID and AZURE_TOKEN_CREDENTIALS", err)
	}
	k.credential = credential
	return k, nil
}

// serviceBus returns a client with a connection of its own.
func (k *connector) serviceBus() (*azservicebus.Client, error) {
	options := &azservicebus.ClientOptions{ApplicationID: applicationID(k.config.program.Name)}
	if k.impatient {
		options.RetryOptions = azservicebus.RetryOptions{MaxRetries: 2, RetryDelay: 300 * time.Millisecond, MaxRetryDelay: time.Second}
	}
	if k.config.connectionString != "" {
		client, err := azservicebus.NewClientFromConnectionString(k.config.connectionString, options)
		if err != nil {
			// The error of the SDK may repeat parts of the connection string.
			return nil, fmt.Errorf("SERVICEBUS_CONNECTION_STRING cannot be used; copy it again from where it was shown")
		}
		return client, nil
	}
	return azservicebus.NewClient(k.config.namespace, k.credential, options)
}

// applicationID names a program in the requests that it sends. The SDKs take at most 24 characters.
func applicationID(program string) string { return program[:min(len(program), 24)] }
