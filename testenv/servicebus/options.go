package servicebus

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/orderworker/orderworker/testenv/fault"
	"github.com/orderworker/orderworker/testenv/history"
)

// The shared access key that the official emulator uses and every example on the web shows.
const (
	EmulatorKeyName = "RootManageSharedAccessKey"
	EmulatorKey     = "SAS_KEY_VALUE"
)

// Rights are the claims of a token, or what an entity lets anyone do.
type Rights int

// The rights. Manage contains the others.
const (
	Listen Rights = 1 << iota
	Send
	manage
	Manage = manage | Listen | Send
)

// Key is a shared access key.
type Key struct {
	Name   string
	Secret string
	// Rights are what a token signed with the key may do. Defaults to Manage.
	Rights Rights
}

// Options configures a [Broker]. The zero value of a field means its default.
type Options struct {
	// Config has the queues.
	Config Config
	// Keys sign the tokens that are accepted. Defaults to the official emulator's key.
	Keys []Key
	// AcceptJWT accepts every token of type jwt that is not empty, for clients with a TokenCredential.
	AcceptJWT bool
	// Faults plans what goes wrong. Defaults to nothing.
	Faults *fault.Plan
	// History records what happens. Defaults to no record.
	History *history.Log
	// Logger receives one record for each refusal and for each connection that ends with an error. Defaults to none.
	Logger *slog.Logger
	// OnRefusal is called with every refusal, beside Logger and history. It must return soon. Defaults to nothing.
	OnRefusal func(what string)
	// MaxMessageSize bounds a message or a batch, in bytes. Defaults to 262144, the limit of the standard tier.
	MaxMessageSize int
	// SenderCredit is how many messages a sender may have under way. Defaults to 1000. A small number makes a slow broker.
	SenderCredit int
	// WithholdCredit gives senders no credit at all, until [Broker.GrantCredit].
	WithholdCredit bool
	// IdleLinkTimeout detaches a receiver or sender over which nothing has passed for so long, with
	// amqp:link:detach-forced. Service Bus does so after 10 minutes. Defaults to never.
	IdleLinkTimeout time.Duration
	// IdleTimeout closes a connection whose client sends nothing for so long. Defaults to 4 minutes.
	IdleTimeout time.Duration
	// OneCBSLink refuses a second pair of $cbs links on one connection with amqp:not-allowed, as Service Bus does.
	OneCBSLink bool
	// LeaveMessageIDNull leaves a message that was sent without a message id without one. By default it gets one.
	LeaveMessageIDNull bool
	// RepeatAnswers sends every answer to a settlement twice.
	RepeatAnswers bool
}

func (o Options) withDefaults() Options {
	if len(o.Keys) == 0 {
		o.Keys = []Key{{Name: EmulatorKeyName, Secret: EmulatorKey}}
	}
	keys := make([]Key, len(o.Keys))
	for i, k := range o.Keys {
		k.Rights = cmp.Or(k.Rights, Manage)
		keys[i] = k
	}
	o.Keys = keys
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	o.MaxMessageSize = cmp.Or(o.MaxMessageSize, 256<<10)
	o.SenderCredit = cmp.Or(o.SenderCredit, 1000)
	o.IdleTimeout = cmp.Or(o.IdleTimeout, 4*time.Minute)
	o.Config = o.Config.withDefaults()
	return o
}

func (o Options) validate() error {
	errs := []error{o.Config.validate()}
	if o.MaxMessageSize < 1024 || o.MaxMessageSize > 100<<20 {
		errs = append(errs, fmt.Errorf("MaxMessageSize %d must be between 1 KiB and 100 MiB", o.MaxMessageSize))
	}
	if o.SenderCredit < 0 || o.IdleLinkTimeout < 0 || o.IdleTimeout < 0 {
		errs = append(errs, errors.New("SenderCredit, IdleLinkTimeout and IdleTimeout must not be negative"))
	}
	for _, k := range o.Keys {
		if k.Name == "" || k.Secret == "" {
			errs = append(errs, errors.New("a key needs a Name and a Secret"))
		}
	}
	return errors.Join(errs...)
}
