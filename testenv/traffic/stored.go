package traffic

import (
	"encoding/json"
	"fmt"
	"strings"
)

// partMark stands between the id of an order and the name of a further document in the ids that the consumer gives.
const partMark = "~part."

// Guard returns the id of the document together with which a further document must have been created. It fits
// Expect of package history.
func Guard(documentID string) (guard string, further bool) {
	guard, _, further = strings.Cut(documentID, partMark)
	return guard, further
}

// storedOrders sorts the documents of a container, as JSON texts by id, into orders. It fails for a document that has not the
// form in which orders are stored: the payload in a member of its own, named by the member "type".
func storedOrders(documents map[string]string) (map[string]storedOrder, error) {
	orders := map[string]storedOrder{}
	for id, text := range documents {
		if _, further := Guard(id); further {
			continue
		}
		body, err := payload(text)
		if err != nil {
			return nil, fmt.Errorf("document %s: %w", id, err)
		}
		o := storedOrder{Body: body}
		for n := 1; ; n++ {
			line, ok := documents[fmt.Sprintf("%s%sline-%d", id, partMark, n)]
			if !ok {
				break
			}
			if body, err = payload(line); err != nil {
				return nil, fmt.Errorf("line %d of %s: %w", n, id, err)
			}
			o.Lines = append(o.Lines, body)
		}
		orders[id] = o
	}
	return orders, nil
}

func payload(text string) (string, error) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal([]byte(text), &members); err != nil {
		return "", err
	}
	var kind string
	if err := json.Unmarshal(members["type"], &kind); err != nil {
		return "", fmt.Errorf("its type cannot be read: %w", err)
	}
	body, ok := members[kind]
	if !ok {
		return "", fmt.Errorf("it has no member %q", kind)
	}
	return string(body), nil
}
