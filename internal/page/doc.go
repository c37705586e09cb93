// Package page is the web page of the dead letter review: server-rendered, without scripts, in one binary.
//
// It is for people on the machine where it runs, or behind a proxy that knows who they are. What messages carry is shown as
// text and never as anything else: every value is escaped, invisible characters are written out, and the content security
// policy allows no script at all, no frame and nothing from elsewhere. Actions need a token that only a page of this server
// can have, come from the same origin and the right host name, and are refused unless the server was told that it may
// write. Who acted and why is recorded by package deadletter.
//
// A [Server] is safe for concurrent use. It deals with one action or plan at a time, since two sweeps of the dead letters
// would hinder each other.
package page
