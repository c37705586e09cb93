// Command orderworker turns the messages of an Azure Service Bus queue into documents in Azure Cosmos DB, each once, and
// helps people with those that it had to put aside.
//
// Exit codes: 0 for success, 1 for a failure while working, 2 for a wrong command or configuration, 3 when check found
// something that must be mended or diff found a difference, 4 when there is nothing to compare with.
package main

import (
	"context"
	"os"
)

func main() {
	os.Exit(run(context.Background(), os.Args[1:], system{
		environ: os.Environ(), stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr,
	}))
}
