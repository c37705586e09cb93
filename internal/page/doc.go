// Package page is the web page of the dead-letter review: server-rendered, in one binary.
//
// It is for people on the machine where it runs, or behind a proxy that signs them in. What messages carry is shown as text and
// never as anything else: every value is escaped, invisible characters are written out, and the content security policy
// allows no script but the page's own file, no frame and nothing from elsewhere. The script only renews counts and progress;
// everything else works without it.
//
// Actions need a form token that only a page of this server can have, come from the same origin and the right host name, and
// are refused unless the server was told that it may write. Where no proxy signs people in and the server may write, a
// browser is let in by an address that works once (see [Options.Announce]), since every user of a shared machine can reach a
// loopback port. A browser sends the cookie to every port of its host, so a hostile program on the same machine that a person
// opens in that browser could still read it. Who acted and why is recorded by package deadletter.
//
// A [Server] is safe for concurrent use. Several people may make plans at a time. Plans are applied one after the other, since
// two that lock dead-lettered messages at a time would hinder each other.
package page
