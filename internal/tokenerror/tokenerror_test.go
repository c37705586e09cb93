package tokenerror_test

import (
	"errors"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
	"github.com/stretchr/testify/require"

	"github.com/orderworker/orderworker/internal/tokenerror"
)

func TestTheCauseOfAMissingTokenIsTold(t *testing.T) {
	for _, tt := range []struct{ name, text, want string }{
		{"one line", "no identity is assigned", "no identity is assigned"},
		{"a trace below", "no identity is assigned\ngoroutine 1", "no identity is assigned"},
		{"a chain", "DefaultAzureCredential: failed to acquire a token.\nAttempted credentials:\n\tManagedIdentityCredential: no endpoint\n\tAzureCLICredential: not found on path",
			"DefaultAzureCredential: failed to acquire a token. ManagedIdentityCredential: no endpoint; AzureCLICredential: not found on path"},
		{"a chain with a dump", "chain failed.\nAttempted credentials:\n\tManagedIdentityCredential authentication failed. \n\t\tGET http://127.0.0.1/msi/token\n\t\t-----\n\t\tRESPONSE 400 Bad Request\n\t\t-----\n\t\t{\n\t\t  \"secret\": \"x\"\n\t\t}\n\t\t-----",
			"chain failed. ManagedIdentityCredential authentication failed. RESPONSE 400 Bad Request"},
		{"a reply of one credential", "ManagedIdentityCredential authentication failed. \nGET http://127.0.0.1/msi/token\n-----\nRESPONSE 400: 400 Bad Request\n-----\n\tsecret\nRESPONSE secret\n-----\nTo troubleshoot, visit x",
			"ManagedIdentityCredential authentication failed. RESPONSE 400: 400 Bad Request"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			require.Equal(t, tt.want, tokenerror.Text(errors.New(tt.text)))
		})
	}
}

// TestTheClientsOwnChainIsUnderstood holds the reading of the text against the client that writes it.
func TestTheClientsOwnChainIsUnderstood(t *testing.T) {
	t.Setenv("AZURE_TOKEN_CREDENTIALS", "EnvironmentCredential")
	for _, name := range []string{"AZURE_TENANT_ID", "AZURE_CLIENT_ID", "AZURE_CLIENT_SECRET"} {
		t.Setenv(name, "")
	}
	credential, err := azidentity.NewDefaultAzureCredential(nil)
	require.NoError(t, err)
	_, err = credential.GetToken(t.Context(), policy.TokenRequestOptions{Scopes: []string{"https://cosmos.azure.com/.default"}})
	require.Error(t, err)
	require.True(t, tokenerror.Is(err))
	require.Regexp(t, `^DefaultAzureCredential: failed to acquire a token\. EnvironmentCredential: .*AZURE_TENANT_ID`, tokenerror.Text(err))
}
