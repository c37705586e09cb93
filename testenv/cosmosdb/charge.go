package cosmosdb

import (
	"math"

	"github.com/orderworker/orderworker/testenv/cosmosdb/internal/jsondoc"
)

// The request charges follow published examples in order of magnitude, for documents of 1 KB: a point read 1, a create 5
// without indexing and 0.2 more for each indexed value, a replace or patch twice that, a refused create 1.24, a query at least 2.3.
const (
	chargeConflict    = 1.24
	chargeFailedRead  = 1.0
	chargeQuery       = 2.3
	chargeQueryPerDoc = 0.05
	chargeFeed        = 1.0
	chargeManage      = 4.95
	chargePerTerm     = 0.2
)

func kilobytes(n int) float64 { return math.Max(1, math.Ceil(float64(n)/1024)) }

func round2(f float64) float64 { return math.Round(f*100) / 100 }

// readCharge is what a point read costs. Strong and bounded staleness ask two replicas.
func (a *Account) readCharge(size int) float64 {
	c := 1 + 0.2*(kilobytes(size)-1)
	if a.opts.Consistency == "Strong" || a.opts.Consistency == "BoundedStaleness" {
		c *= 2
	}
	return round2(c)
}

func createCharge(d definition, v *version) float64 {
	c := 5 + 1.5*(kilobytes(len(v.raw))-1)
	if d.indexed {
		c += chargePerTerm * float64(v.terms)
	}
	return round2(c)
}

func replaceCharge(d definition, v *version) float64 { return round2(2 * createCharge(d, v)) }

// terms counts the values that an index holds.
func terms(v any) int {
	n := 0
	switch v := v.(type) {
	case *jsondoc.Object:
		for _, name := range v.Names() {
			member, _ := v.Get(name)
			n += terms(member)
		}
	case []any:
		for _, e := range v {
			n += terms(e)
		}
	default:
		n = 1
	}
	return n
}
