package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/orderworker/orderworker/worker"
)

func TestAnOrderBecomesItsDocuments(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, body string
		names      []string
	}{
		{"without lines", `{"a":1}`, []string{""}},
		{"with lines", `{"lines":[{"sku":1},{"sku":2}]}`, []string{"", "line-1", "line-2"}},
		{"with no line", `{"lines":[]}`, []string{""}},
		{"with lines that are no objects", `{"lines":[1,2]}`, []string{""}},
		{"with some lines that are no objects", `{"lines":[{"sku":1},2]}`, []string{""}},
		{"with a member of that name that is no array", `{"lines":{"a":1}}`, []string{""}},
		{"with a member of nearly that name", `{"Lines":[{"sku":1}],"LINES":[{"sku":2}]}`, []string{""}},
		{"with a member of nearly that name after it", `{"lines":[{"sku":1}],"Lines":[]}`, []string{"", "line-1"}},
		{"with null lines", `{"lines":null}`, []string{""}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			effects, err := order(t.Context(), worker.Message{Body: []byte(tt.body)})
			require.NoError(t, err)
			var names []string
			for _, d := range effects.Documents {
				names = append(names, d.Name)
				require.Contains(t, orderTypes, d.Type, "the store must know every type before the first message")
			}
			require.Equal(t, tt.names, names)
			require.Equal(t, tt.body, string(effects.Documents[0].Content))
		})
	}
}
