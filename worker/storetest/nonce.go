package storetest

import "crypto/rand"

// nonce returns an attempt that no other delivery has.
func nonce() string { return rand.Text() }
