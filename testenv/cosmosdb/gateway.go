package cosmosdb

import (
	"net/http"
	"strings"
)

// maxSegment is the longest escaped path segment that the routing gateway's web server accepts, in bytes. Clients see it as
// an HTML page with status 400 from about 264 characters on; the server's documented limit is 260.
const maxSegment = 260

// gatewayVerdict imitates what the routing gateway does to document ids in a path, and returns its refusal or nil. Creating
// and batches do not come by here, since their ids stand in the body: such a document can be created but not addressed.
// The compute gateway takes every id.
func gatewayVerdict(q *request) *reply {
	if q.resource != documentResource {
		return nil
	}
	if escaped := q.path[strings.LastIndexByte(strings.TrimSuffix(q.path, "/"), '/')+1:]; len(escaped) > maxSegment {
		r := htmlBadRequest()
		return &r
	}
	id := q.part(5)
	switch {
	case strings.ContainsFunc(id, func(r rune) bool { return r < 0x20 || r == 0x7f }):
		r := refuse(http.StatusBadRequest, 0, "the id in the path has a control character")
		return &r
	case strings.ContainsAny(id, `/\#`), strings.TrimRight(id, " \u00a0") != id, hasPercentEscape(id):
		return unauthorized("the signature does not fit the path that the gateway made of this id")
	}
	return nil
}

func hasPercentEscape(id string) bool {
	for i := 0; i+2 < len(id); i++ {
		if id[i] == '%' && isHex(id[i+1]) && isHex(id[i+2]) {
			return true
		}
	}
	return false
}

func isHex(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F'
}

// htmlBadRequest is the page that the gateway's web server answers when it does not like a URL.
func htmlBadRequest() reply {
	return reply{status: http.StatusBadRequest, mediaType: "text/html; charset=us-ascii", charge: 0, message: "invalid URL",
		body: []byte("<!DOCTYPE HTML>\r\n<HTML><HEAD><TITLE>Bad Request</TITLE></HEAD>\r\n" +
			"<BODY><h2>Bad Request - Invalid URL</h2><hr><p>HTTP Error 400. The request URL is invalid.</p></BODY></HTML>\r\n")}
}
