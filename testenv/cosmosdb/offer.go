package cosmosdb

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/orderworker/orderworker/testenv/cosmosdb/internal/jsondoc"
)

// defaultThroughput is what a container gets when nobody asks for more, in request units per second.
const defaultThroughput = 400

// offer is the throughput of a database or container, as a resource of its own.
type offer struct {
	id    string
	props *jsondoc.Object
}

// readOffer reads the throughput that a request asks for, or nil.
func readOffer(q *request) (*jsondoc.Object, *reply) {
	if s := q.header.Get("x-ms-cosmos-offer-autopilot-settings"); s != "" {
		settings, err := jsondoc.ParseObject([]byte(s))
		if err != nil {
			r := refuse(http.StatusBadRequest, 0, "x-ms-cosmos-offer-autopilot-settings is not a JSON object")
			return nil, &r
		}
		content := jsondoc.NewObject()
		content.Set("offerAutopilotSettings", settings)
		if r := checkThroughput(content); r != nil {
			return nil, r
		}
		return content, nil
	}
	s := q.header.Get("x-ms-offer-throughput")
	if s == "" {
		return nil, nil
	}
	n, err := strconv.Atoi(s)
	if err != nil {
		r := refuse(http.StatusBadRequest, 0, "x-ms-offer-throughput is not a number")
		return nil, &r
	}
	content := manualThroughput(n)
	return content, checkThroughput(content)
}

// minAutoscale is the least maximum of an autoscale throughput, and its step, in request units per second.
const minAutoscale = 1000

// checkThroughput refuses values that the service does not take. An autoscale throughput is read back with the tenth of its
// maximum, from which it scales.
func checkThroughput(content *jsondoc.Object) *reply {
	if v, ok := jsondoc.At(content, []string{"offerAutopilotSettings", "maxThroughput"}); ok {
		most, _ := v.(float64)
		if n := int(most); n < minAutoscale || n%minAutoscale != 0 || float64(n) != most {
			r := refuse(http.StatusBadRequest, 0, "the maximum throughput of autoscale must be a multiple of 1000 and at least 1000")
			return &r
		}
		content.Set("offerThroughput", most/10)
		return nil
	}
	v, _ := content.Get("offerThroughput")
	f, _ := v.(float64)
	if n := int(f); n < defaultThroughput || n%100 != 0 || float64(n) != f {
		r := refuse(http.StatusBadRequest, 0, "the throughput must be a multiple of 100 and at least 400")
		return &r
	}
	return nil
}

func manualThroughput(n int) *jsondoc.Object {
	content := jsondoc.NewObject()
	content.Set("offerThroughput", float64(n))
	return content
}

// attachOffer makes the resource for a throughput. It does nothing without one.
func (a *Account) attachOffer(to **offer, content *jsondoc.Object, ownerRID, ownerSelf string) {
	if content == nil {
		return
	}
	a.rids++
	id := strings.TrimRight(resourceID(a.rids), "=")
	props := jsondoc.NewObject()
	props.Set("resource", ownerSelf)
	props.Set("offerType", "Invalid")
	props.Set("offerResourceId", ownerRID)
	props.Set("offerVersion", "V2")
	props.Set("content", content)
	props.Set("id", id)
	a.stamp(props, id, "offers/"+id+"/")
	*to = &offer{id: id, props: props}
}

// serveOffers reads, queries and replaces throughput.
func (a *Account) serveOffers(q *request) reply {
	if q.resource == offerFeed {
		if !q.isQuery() {
			return a.refuseLocked(q, "this operation on offers")
		}
		return a.queryManagement(q)
	}
	for _, o := range a.offers() {
		if o.id != q.part(1) {
			continue
		}
		switch q.method {
		case http.MethodGet:
			return answer(http.StatusOK, o.props)
		case http.MethodPut:
			return a.replaceOffer(q, o)
		}
		return a.refuseLocked(q, "this operation on an offer")
	}
	return refuse(http.StatusNotFound, 0, "the offer does not exist")
}

func (a *Account) replaceOffer(q *request, o *offer) reply {
	body, err := jsondoc.ParseObject(q.body)
	if err != nil {
		return refuse(http.StatusBadRequest, 0, "the offer is not valid: "+err.Error())
	}
	v, _ := body.Get("content")
	content, ok := v.(*jsondoc.Object)
	if !ok {
		return refuse(http.StatusBadRequest, 0, "the offer has no content")
	}
	if r := checkThroughput(content); r != nil {
		return *r
	}
	self, _ := o.props.Text("_self")
	props := o.props.Clone()
	props.Set("content", content)
	a.stamp(props, o.id, self)
	o.props = props
	return answer(http.StatusOK, props).with("x-ms-cosmos-min-throughput", strconv.Itoa(defaultThroughput))
}

func (a *Account) offers() []*offer {
	var list []*offer
	for _, d := range a.databases {
		if d.offer != nil {
			list = append(list, d.offer)
		}
		for _, c := range d.containers {
			if c.offer != nil {
				list = append(list, c.offer)
			}
		}
	}
	return list
}
