package traffic

import "fmt"

// What a command asks for.
const (
	// Debit takes an amount, which may be negative, from the balance of an account, or is refused as InsufficientFunds: the
	// decision needs a read.
	Debit = "debit"
	// Capture sets a bill to PAID, or is refused as AlreadyPaid: a change on a condition.
	Capture = "capture"
	// Ship adds an amount and its own id to a bill: a change without a read, which must not be made twice.
	Ship = "ship"
	// Project stores the state of a version whole, unless it has come to a newer one.
	Project = "project"
	// Revise sets the note of a version, unless it has come to a newer one.
	Revise = "revise"
	// Price stores a whole state, and whichever comes last remains: it needs no record.
	Price = "price"
	// Foreign is of a type that the consumer does not know, and completes without an effect.
	Foreign = "foreign"
)

// The reasons for which commands are refused.
const (
	InsufficientFunds = "InsufficientFunds"
	AlreadyPaid       = "AlreadyPaid"
)

// A Command is the body of a message that is no order.
type Command struct {
	Do     string `json:"do"`
	Entity string `json:"entity"`
	// Amount is an amount of money or of goods, or the version.
	Amount int64  `json:"amount"`
	Note   string `json:"note"`
}

func (c Command) reordered() []byte {
	return fmt.Appendf(nil, "{ \"note\": %s, \"entity\": %s,\n \"do\": %s, \"amount\": %d }\n", encode(c.Note), encode(c.Entity), encode(c.Do), c.Amount)
}

// changed keeps the version, so that the newest one is determined, whichever of the two contents wins.
func (c Command) changed(by int) content {
	c.Note += "!"
	if c.Do != Project && c.Do != Revise {
		c.Amount += int64(by)
	}
	return c
}

// commands makes the commands of a mixed stream, in small bursts about one entity, so that they race.
type commands struct {
	stream   *Stream
	entities map[string]*entity // the current one of each family
	burst    []Message
}

// entity is what commands are about. After some of them another one takes its place.
type entity struct {
	id, before string
	commands   int
}

// perEntity is the number of commands about one entity.
const perEntity = 14

// next makes a command, if it is the turn of one.
func (c *commands) next() (m Message, ok bool) {
	if c == nil {
		return Message{}, false
	}
	if len(c.burst) == 0 && c.stream.rng.IntN(4) == 0 {
		c.draw()
	}
	if len(c.burst) == 0 {
		return Message{}, false
	}
	m, c.burst = c.burst[0], c.burst[1:]
	return m, true
}

// families are the kinds of entities, each with what can be asked of it and the document that it begins with.
var families = [...]struct {
	name, members string
	do            []string
}{
	{"account", `"balance":100,"debits":0`, []string{Debit}},
	{"bill", `"status":"NEW","paid":0,"shipped":0,"history":[]`, []string{Capture, Ship}},
	{"projection", ``, []string{Project}},
	{"revision", `"version":0,"note":""`, []string{Revise}},
	{"article", ``, []string{Price}},
	{"stranger", ``, []string{Foreign}},
}

// draw makes a burst of one to five commands about one entity.
func (c *commands) draw() {
	rng := c.stream.rng
	family := families[rng.IntN(len(families))]
	for range 1 + rng.IntN(5) {
		e := c.entities[family.name]
		if e == nil || e.commands == perEntity {
			e = &entity{id: c.stream.name(family.name + "-")}
			if family.members != "" {
				e.before = fmt.Sprintf(`{"id":%q,"pk":%[1]q,%s}`, e.id, family.members)
			}
			c.entities[family.name] = e
		}
		command := Command{Do: family.do[rng.IntN(len(family.do))], Entity: e.id, Amount: int64(1 + rng.IntN(40)), Note: fmt.Sprint("note ", rng.IntN(1000))}
		if command.Do == Debit {
			command.Amount -= 10
		}
		m := c.stream.remember(Message{ID: c.stream.name("c"), Body: encode(command), Kind: NewCommand, Type: command.Do, Entity: e.id}, command)
		m.Before = e.before
		c.burst = append(c.burst, m)
		e.before = ""
		e.commands++
	}
}
