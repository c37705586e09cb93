package cosmosstore

import (
	"net/http"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
)

// maxReply bounds the body of a reply in bytes: somewhat more than the largest that the service sends, a page of 4 MB.
const maxReply = 5 << 20

// replyBound ends replies that are larger than any of the service's. azcosmos reads each to its end, so one that something
// else sends in the place of the account, and never ends, would take all memory. It counts as a connection that broke.
type replyBound struct{ policy.Transporter }

// Do implements policy.Transporter.
func (b replyBound) Do(r *http.Request) (*http.Response, error) {
	resp, err := b.Transporter.Do(r)
	if resp != nil && resp.Body != nil {
		resp.Body = http.MaxBytesReader(nil, resp.Body, maxReply)
	}
	return resp, err
}
