package cosmosstore

import (
	"context"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
)

// tokenError is the failure of a credential.
type tokenError struct{ error }

func (e *tokenError) Unwrap() error { return e.error }

// credential marks the errors of another credential, so that they can be told from those of the account.
type credential struct{ azcore.TokenCredential }

// GetToken implements azcore.TokenCredential.
func (c credential) GetToken(ctx context.Context, o policy.TokenRequestOptions) (azcore.AccessToken, error) {
	token, err := c.TokenCredential.GetToken(ctx, o)
	if err != nil && ctx.Err() == nil {
		return token, &tokenError{err}
	}
	return token, err
}
