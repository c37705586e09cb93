package servicebus

import (
	"encoding/binary"
	"math/rand/v2"

	"github.com/orderworker/orderworker/testenv/internal/amqp"
)

// newToken returns a random uuid of version 4.
func newToken() amqp.UUID {
	var u amqp.UUID
	binary.LittleEndian.PutUint64(u[:8], rand.Uint64())
	binary.LittleEndian.PutUint64(u[8:], rand.Uint64())
	u[6] = u[6]&0x0f | 0x40
	u[8] = u[8]&0x3f | 0x80
	return u
}

// netToken returns the lock token as the delivery tag has it: in the byte order of a .NET GUID.
func netToken(u amqp.UUID) []byte {
	return []byte{
		u[3], u[2], u[1], u[0], u[5], u[4], u[7], u[6], u[8], u[9], u[10], u[11], u[12], u[13], u[14], u[15],
	}
}

// tokenOf turns a delivery tag back into a lock token.
func tokenOf(tag []byte) amqp.UUID {
	if len(tag) != 16 {
		return amqp.UUID{}
	}
	return amqp.UUID(netToken(amqp.UUID(tag)))
}
