package cosmosdb

import (
	"fmt"

	"github.com/orderworker/orderworker/testenv/cosmosdb/internal/jsondoc"
)

// document is a document as a client sent it. The object is nil when it cannot be read, and err tells why.
type document struct {
	size   int
	object *jsondoc.Object
	err    error
}

// readDocument reads a document, unless it is larger than any document may be.
func readDocument(body []byte) document {
	d := document{size: len(body)}
	if d.size > maxItem {
		d.err = fmt.Errorf("the document has %d bytes, at most %d are allowed", d.size, maxItem)
		return d
	}
	d.object, d.err = jsondoc.ParseObject(body)
	return d
}

// id is the id in the document, or "" when it cannot be read; the operation itself says what is wrong.
func (d document) id() string {
	if d.object == nil {
		return ""
	}
	id, _ := d.object.Text("id")
	return id
}
