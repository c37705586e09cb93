package cosmosdb_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"github.com/orderworker/orderworker/testenv/cosmosdb"
	"github.com/orderworker/orderworker/testenv/fault"
	"github.com/orderworker/orderworker/testenv/history"
)

// The reply to a create is lost, and the client meets its own document when it tries again.
func Example() {
	plan := fault.Script(fault.On(history.CreateDocument).After(fault.DropReply()))
	account, err := cosmosdb.New(cosmosdb.Options{Faults: plan})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer account.Close()
	if err := account.CreateContainer("shop", cosmosdb.ContainerSpec{ID: "orders"}); err != nil {
		fmt.Println(err)
		return
	}
	key, _ := azcosmos.NewKeyCredential(account.Key())
	client, _ := azcosmos.NewClientWithKey("http://example.test/", key, &azcosmos.ClientOptions{
		ClientOptions: azcore.ClientOptions{Transport: account.Transport()}})
	defer client.Close()
	orders, _ := client.NewContainer("shop", "orders")

	for range 2 {
		_, err := orders.CreateItem(context.Background(), azcosmos.NewPartitionKeyString("1042"), []byte(`{"id":"1042"}`), nil)
		if answer, ok := errors.AsType[*azcore.ResponseError](err); ok {
			fmt.Println("answered", answer.StatusCode)
		} else {
			fmt.Println("answer lost:", err != nil)
		}
	}
	fmt.Println("documents:", account.Count("shop", "orders"))
	// Output:
	// answer lost: true
	// answered 409
	// documents: 1
}
