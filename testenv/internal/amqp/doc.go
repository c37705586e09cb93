// Package amqp is the AMQP 1.0 wire codec of the embedded Service Bus, and the server's half of a connection.
//
// The codec follows the OASIS standard (amqp-core-types, -transport, -messaging, -security). It keeps the exact type of
// every value, so that a ulong message id leaves as a ulong, and it can split a message into its encoded sections, so
// that a message is handed on byte for byte. Decoding never panics, and never allocates more than a small multiple of
// its input. Transactions are not implemented; a frame that asks for one is refused.
//
// [Conn] is one server connection over any net.Conn. It needs no clock but package time, and every goroutine it starts
// ends with [Conn.Serve], so that it runs inside testing/synctest bubbles. The package imports no Azure code on purpose:
// the unmodified clients are its judges.
package amqp
