package traffic

import "fmt"

// order is what the body of an order says.
type order struct {
	ID       string  `json:"orderId"`
	Customer string  `json:"customer"`
	Amount   float64 `json:"amount"`
	Lines    []line  `json:"lines,omitempty"`
}

type line struct {
	SKU      string `json:"sku"`
	Quantity int    `json:"quantity"`
}

// order makes a new order.
func (s *Stream) order(lines int) Message {
	o := order{ID: s.name(""), Customer: fmt.Sprintf("customer-%d", s.rng.IntN(1000)), Amount: float64(s.rng.IntN(100000)) / 100}
	for i := range lines {
		o.Lines = append(o.Lines, line{SKU: fmt.Sprintf("sku-%d", i+1), Quantity: 1 + s.rng.IntN(9)})
	}
	kind := New
	if lines > 0 {
		kind = Lines
	}
	return s.remember(Message{ID: o.ID, Body: encode(o), Kind: kind, Type: TypeOrder, Entity: o.ID}, o)
}

// reordered has other spaces, too, and the amount written in another way.
func (o order) reordered() []byte {
	text := "{ "
	if len(o.Lines) > 0 {
		text += fmt.Sprintf("\"lines\": %s,\n", encode(o.Lines))
	}
	return fmt.Appendf(nil, "%s\"amount\": %fe0, \"customer\": %s,\n \"orderId\": %s }\n", text, o.Amount, encode(o.Customer), encode(o.ID))
}

func (o order) changed(by int) content {
	o.Amount += float64(by)
	return o
}
