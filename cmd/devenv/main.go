// Command devenv runs the embedded Service Bus and Cosmos DB on this machine, and shows what the worker does on them.
//
// Without a command it serves the environment on the ports of Microsoft's emulators until Ctrl-C. The command demo sends a
// small stream of orders through the real worker and shows what became of each; torture kills and breaks real workers for a
// while and then checks every promise. Nothing here is part of what goes into production.
//
// Exit codes: 0 when all is as it should be, 1 when something failed or a promise was broken, 2 for a wrong command.
package main

import (
	"context"
	"os"
)

func main() {
	os.Exit(run(context.Background(), os.Args[1:], system{
		environ: os.Environ(), stdout: os.Stdout, stderr: os.Stderr,
	}))
}
