// Package query is a stub.
package query

import (
	"errors"

	"github.com/orderworker/orderworker/testenv/cosmosdb/internal/jsondoc"
)

type Condition struct{}

func ParseCondition(string) (Condition, error)                 { return Condition{}, errors.New("not yet") }
func (Condition) Matches(*jsondoc.Object, map[string]any) bool { return false }
