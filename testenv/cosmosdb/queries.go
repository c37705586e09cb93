package cosmosdb

func (a *Account) queryDocuments(q *request, c *container, key partitionKey) reply {
	return a.refuseLocked(q, "queries")
}
func (a *Account) queryManagement(q *request) reply { return a.refuseLocked(q, "queries") }
func (a *Account) readChangeFeed(q *request, c *container, key partitionKey) reply {
	return a.refuseLocked(q, "queries")
}
