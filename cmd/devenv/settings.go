package main

import (
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"

	"github.com/orderworker/orderworker/testenv"
	"github.com/orderworker/orderworker/testenv/servicebus"
)

// introduce says what there is, and how to use it.
func (o serveOptions) introduce(w io.Writer, env *testenv.Env, at testenv.Addresses) {
	fmt.Fprintf(w, "Embedded Service Bus and Cosmos DB. All is kept in memory and gone after Ctrl-C.\n\n")
	fmt.Fprintf(w, "  Service Bus  sb://%s  queue %s: %s\n", at.AMQP, env.Queue.Name, describeQueue(env.Queue))
	fmt.Fprintf(w, "  Management   http://%s/health and /queues\n", at.Management)
	fmt.Fprintf(w, "  Cosmos DB    http://%s  database %s, container %s\n", at.Cosmos, env.Database, env.Container)
	fmt.Fprintf(w, "\nSettings for the worker; paste them into another terminal:\n\n")
	printExports(w, env, at)
	if note := o.note(); note != "" {
		fmt.Fprintf(w, "\n%s\n", note)
	}
	worker := workerCommand()
	fmt.Fprintf(w, "\nThen, for example:\n\n")
	fmt.Fprintf(w, "%s run\n", worker)
	fmt.Fprintf(w, "echo '{\"message_id\":\"1042\",\"body\":{\"orderId\":\"1042\",\"amount\":40}}' | %s send\n", worker)
	fmt.Fprintf(w, "curl -s http://%s/queues\n", fromHere(at.Management))
}

func describeQueue(q servicebus.Queue) string {
	duplicates := "no duplicate detection"
	if q.RequiresDuplicateDetection {
		duplicates = fmt.Sprintf("duplicate detection %v", q.DuplicateDetectionHistoryTimeWindow)
	}
	return fmt.Sprintf("lock %v, %d deliveries, %s", q.LockDuration, q.MaxDeliveryCount, duplicates)
}

// printExports prints the settings for a worker on this machine.
func printExports(w io.Writer, env *testenv.Env, at testenv.Addresses) {
	local := strings.NewReplacer(at.AMQP, fromHere(at.AMQP), at.Cosmos, fromHere(at.Cosmos))
	for _, s := range env.Settings() {
		fmt.Fprintf(w, "export %s=%s\n", s.Name, quote(local.Replace(s.Value)))
	}
}

// fromHere is an address by which a program on this machine reaches what listens there. One that stands for every address of
// the machine is no address to connect to, and the worker does not take it for this machine.
func fromHere(address string) string {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return address
	}
	if ip, err := netip.ParseAddr(host); host != "" && (err != nil || !ip.IsUnspecified()) {
		return address
	}
	return net.JoinHostPort("127.0.0.1", port)
}

// note says who can use the settings when others than this machine are let in.
func (o serveOptions) note() string {
	ip, err := netip.ParseAddr(o.host)
	switch {
	case o.host == "localhost", err == nil && ip.IsLoopback():
		return ""
	case o.host == "", err == nil && ip.IsUnspecified():
		return "Others on the network are let in too. The settings are for this machine, by the address 127.0.0.1: without TLS the worker\ntakes no other."
	}
	return "The worker takes no address without TLS but this machine's own, so it will refuse " + o.host + ".\nTo let in others and use the worker here, give --host 0.0.0.0."
}

// quote makes one word of a text for a POSIX shell.
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// workerCommand is how a person in the current folder starts the worker.
func workerCommand() string {
	path, err := findProgram("--worker", "", "orderworker")
	if err != nil {
		return "go run ./cmd/orderworker"
	}
	here, err := os.Getwd()
	if err != nil {
		return quote(path)
	}
	if rel, err := filepath.Rel(here, path); err == nil && !strings.HasPrefix(rel, "..") {
		return "./" + filepath.ToSlash(rel)
	}
	return quote(path)
}
