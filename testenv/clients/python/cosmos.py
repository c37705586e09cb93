"""What a Python program does with a container, by the unmodified azure-cosmos."""
import os
import time

from azure.core import MatchConditions
from azure.cosmos import CosmosClient, PartitionKey, ThroughputProperties
from azure.cosmos.exceptions import (
    CosmosAccessConditionFailedError, CosmosBatchOperationError, CosmosHttpResponseError, CosmosResourceExistsError, CosmosResourceNotFoundError,
)

from checks import check, equal, fails, finish

client = CosmosClient(os.environ["CLIENTS_COSMOS"], os.environ["CLIENTS_COSMOS_KEY"], retry_total=1)
database = client.create_database_if_not_exists("python")
container = database.create_container_if_not_exists("orders", PartitionKey("/pk"), default_ttl=-1)
tenants = database.create_container_if_not_exists("tenants", PartitionKey(["/tenant", "/user"]))


@check("create, read, replace, upsert, delete")
def _():
    created = container.create_item({"id": "1", "pk": "a", "n": 1})
    headers = created.get_response_headers()
    equal(float(headers["x-ms-request-charge"]) > 0 and headers["x-ms-alt-content-path"] == "dbs/python/colls/orders", True, "headers in lower case")
    equal(container.read_item("1", "a")["n"], 1)
    equal(container.replace_item("1", {"id": "1", "pk": "a", "n": 2})["n"], 2)
    equal(container.upsert_item({"id": "2", "pk": "a"})["id"], "2")
    container.delete_item("2", "a")
    fails(CosmosResourceNotFoundError, lambda: container.read_item("2", "a"))


@check("items instead of ids: addresses by _self")
def _():
    item = container.read_item("1", "a")
    equal(container.read_item(item, "a")["n"], 2)
    equal(container.replace_item(item, {**item, "n": 3})["n"], 3)
    other = container.create_item({"id": "self", "pk": "a"})
    container.delete_item(other, "a")
    fails(CosmosResourceNotFoundError, lambda: container.read_item(other, "a"))


@check("reads carry the session token of the last write")
def _():
    sent = []
    container.upsert_item({"id": "1", "pk": "a", "n": 3})
    container.read_item("1", "a", raw_response_hook=lambda r: sent.append(r.http_request.headers.get("x-ms-session-token")))
    equal(sent[0].startswith("0:-1#"), True, "a session token")


@check("a second create conflicts")
def _():
    fails(CosmosResourceExistsError, lambda: container.create_item({"id": "1", "pk": "a"}))


@check("an ETag that is no longer current")
def _():
    etag = container.read_item("1", "a")["_etag"]
    replace = lambda n: container.replace_item("1", {"id": "1", "pk": "a", "n": n}, etag=etag, match_condition=MatchConditions.IfNotModified)
    replace(5)
    fails(CosmosAccessConditionFailedError, lambda: replace(6))
    equal(container.read_item("1", "a")["n"], 5)


@check("a replace with another id is a rename")
def _():
    container.create_item({"id": "old", "pk": "a"})
    container.replace_item("old", {"id": "new", "pk": "a"})
    fails(CosmosResourceNotFoundError, lambda: container.read_item("old", "a"))
    container.delete_item("new", "a")


@check("patch with a condition, and move")
def _():
    container.create_item({"id": "p", "pk": "a", "n": 1, "from": {"x": 7}})
    patched = container.patch_item("p", "a", [{"op": "incr", "path": "/n", "value": 2}, {"op": "move", "from": "/from/x", "path": "/to"}])
    equal((patched["n"], patched["from"], patched["to"]), (3, {}, 7))
    change = lambda condition: container.patch_item("p", "a", [{"op": "set", "path": "/n", "value": 4}], filter_predicate=condition)
    fails(CosmosAccessConditionFailedError, lambda: change("from c where c.n > 100"))
    equal(change("from c where c.n = 3")["n"], 4)
    container.delete_item("p", "a")


@check("a batch happens as a whole or not at all")
def _():
    results = container.execute_item_batch([
        ("create", ({"id": "b1", "pk": "b", "n": 1},)), ("upsert", ({"id": "b2", "pk": "b"},)), ("read", ("b1",)),
    ], "b")
    equal([r["statusCode"] for r in results], [201, 201, 200])
    failed = fails(CosmosBatchOperationError, lambda: container.execute_item_batch([
        ("create", ({"id": "b3", "pk": "b"},)), ("create", ({"id": "b1", "pk": "b"},)),
    ], "b"))
    equal((failed.status_code, failed.error_index, [r["statusCode"] for r in failed.operation_responses]), (409, 1, [424, 409]))
    fails(CosmosResourceNotFoundError, lambda: container.read_item("b3", "b"))


@check("ETags and conditions in a batch")
def _():
    etag = container.read_item("b1", "b")["_etag"]

    def change(**options):
        return container.execute_item_batch([
            ("create", ({"id": "record", "pk": "b"},)), ("patch", ("b1", [{"op": "incr", "path": "/n", "value": 1}]), options),
        ], "b")

    failed = fails(CosmosBatchOperationError, lambda: change(filter_predicate="from c where c.n > 100"))
    equal((failed.status_code, [r["statusCode"] for r in failed.operation_responses]), (412, [424, 412]))
    failed = fails(CosmosBatchOperationError, lambda: change(if_match_etag='"stale"'))
    equal((failed.status_code, [r["statusCode"] for r in failed.operation_responses]), (412, [424, 412]))
    fails(CosmosResourceNotFoundError, lambda: container.read_item("record", "b"))
    equal([r["statusCode"] for r in change(if_match_etag=etag, filter_predicate="from c where c.n = 1")], [201, 200])
    equal(container.read_item("b1", "b")["n"], 2)


for i in range(12):
    container.create_item({"id": f"q{i}", "pk": f"part{i % 3}", "n": (i * 7) % 12, "kind": "query"})


def query(text, **options):
    return list(container.query_items(text, **options))


@check("queries in one partition")
def _():
    equal(query("SELECT VALUE c.n FROM c ORDER BY c.n DESC", partition_key="part0"), [9, 6, 3, 0])
    equal(query("SELECT VALUE c.id FROM c WHERE c.n = @n", parameters=[{"name": "@n", "value": 7}], partition_key="part1"), ["q1"])
    equal(query("SELECT VALUE COUNT(1) FROM c", partition_key="part2"), [4])


@check("queries over partitions: order, top, offset, count")
def _():
    every = {"enable_cross_partition_query": True}
    equal(len(query("SELECT * FROM c WHERE c.kind = 'query'", **every)), 12)
    equal(query("SELECT VALUE c.n FROM c WHERE c.kind = 'query' ORDER BY c.n", max_item_count=5, **every), list(range(12)))
    equal(len(query("SELECT TOP 3 * FROM c WHERE c.kind = 'query'", **every)), 3)
    equal(query("SELECT VALUE c.n FROM c WHERE c.kind = 'query' ORDER BY c.n OFFSET 2 LIMIT 3", **every), [2, 3, 4])
    equal(query("SELECT VALUE COUNT(1) FROM c WHERE c.kind = 'query'", **every), [12])


@check("what is not implemented says so")
def _():
    for text in ("SELECT DISTINCT c.pk FROM c", "SELECT * FROM c JOIN l IN c.list", "SELECT 1"):
        equal(fails(CosmosHttpResponseError, lambda: query(text, partition_key="part0")).status_code, 501, text)
    equal(fails(CosmosHttpResponseError, lambda: container.delete_all_items_by_partition_key("part0")).status_code, 501)


@check("a prefix of a hierarchical key has no other tenant's documents")
def _():
    for tenant, user in (("t1", "u1"), ("t1", "u2"), ("t2", "u1")):
        tenants.create_item({"id": tenant + user, "tenant": tenant, "user": user})
    got = list(tenants.query_items("SELECT VALUE c.id FROM c", partition_key=["t1"]))
    equal(sorted(got), ["t1u1", "t1u2"])


@check("a range of one key has no other key's documents")
def _():
    only = container.feed_range_from_partition_key("part1")
    equal(sorted(query("SELECT VALUE c.id FROM c", feed_range=only)), ["q1", "q10", "q4", "q7"])
    feed = container.query_items_change_feed(feed_range=only, start_time="Beginning")
    equal([d["id"] for d in feed], ["q1", "q4", "q7", "q10"])
    equal(all("_lsn" in d for d in container.query_items_change_feed(partition_key="part1", start_time="Beginning")), True, "_lsn")


@check("reading many")
def _():
    equal(sorted(d["id"] for d in container.read_items([("q0", "part0"), ("q1", "part1"), ("none", "part1")])), ["q0", "q1"])


@check("documents expire")
def _():
    container.create_item({"id": "short", "pk": "a", "ttl": 1})
    time.sleep(2.1)
    fails(CosmosResourceNotFoundError, lambda: container.read_item("short", "a"))


@check("lists of databases and containers")
def _():
    equal("python" in [d["id"] for d in client.list_databases()], True)
    equal(sorted(c["id"] for c in database.list_containers()), ["orders", "tenants"])
    equal([c["id"] for c in database.query_containers("SELECT * FROM c WHERE c.id = 'orders'")], ["orders"])


@check("throughput")
def _():
    equal(container.get_throughput().offer_throughput, 400)
    auto = database.create_container("auto", PartitionKey("/pk"), offer_throughput=ThroughputProperties(auto_scale_max_throughput=4000))
    equal(auto.get_throughput().auto_scale_max_throughput, 4000)
    database.delete_container("auto")


@check("a wrong key")
def _():
    equal(fails(CosmosHttpResponseError, lambda: CosmosClient(os.environ["CLIENTS_COSMOS"], "d3Jvbmc=")).status_code, 401)


client.delete_database("python")
finish("Python Cosmos DB")
