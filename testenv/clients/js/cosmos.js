// What a JavaScript program does with a container, by the unmodified @azure/cosmos.
import { CosmosClient, BulkOperationType } from "@azure/cosmos";
import { check, equal, fails, finish } from "./checks.js";

const tokens = []; // the session tokens that were sent
const client = new CosmosClient({
  endpoint: process.env.CLIENTS_COSMOS, key: process.env.CLIENTS_COSMOS_KEY, consistencyLevel: "Session",
  plugins: [{ on: "request", plugin: async (context, _diagnostics, next) => { tokens.push(context.headers["x-ms-session-token"]); return next(context); } }],
  connectionPolicy: { enableEndpointDiscovery: false, retryOptions: { maxRetryAttemptCount: 1 } },
});
const { database } = await client.databases.createIfNotExists({ id: "js" });
const { container } = await database.containers.createIfNotExists({ id: "orders", partitionKey: "/pk", defaultTtl: -1 });
const { container: tenants } = await database.containers.createIfNotExists({
  id: "tenants", partitionKey: { paths: ["/tenant", "/user"], kind: "MultiHash", version: 2 },
});

await check("the definition of a container is filled in", async () => {
  const { resource } = await container.read();
  equal([resource.partitionKey.kind, resource.indexingPolicy.indexingMode, resource.conflictResolutionPolicy.mode], ["Hash", "consistent", "LastWriterWins"]);
});

await check("create, read, replace, upsert, delete", async () => {
  const created = await container.items.create({ id: "1", pk: "a", n: 1 });
  equal(created.statusCode, 201);
  equal(created.requestCharge > 0, true, "a charge");
  const read = await container.item("1", "a").read();
  equal([read.resource.n, read.etag], [1, created.etag]);
  equal((await container.item("1", "a").replace({ id: "1", pk: "a", n: 2 })).resource.n, 2);
  equal((await container.items.upsert({ id: "1", pk: "a", n: 3 })).statusCode, 200);
  equal((await container.items.upsert({ id: "2", pk: "a", n: 4 })).statusCode, 201);
  equal((await container.item("2", "a").delete()).statusCode, 204);
  equal((await container.item("2", "a").read()).statusCode, 404);
});

await check("reads carry the session token of the last write", async () => {
  await container.items.upsert({ id: "1", pk: "a", n: 3 });
  await container.item("1", "a").read();
  if (!/^0:-1#\d+$/.test(tokens.at(-1))) throw new Error(`the last token was ${tokens.at(-1)}`);
});

await check("a second create conflicts", async () => {
  equal((await fails(() => container.items.create({ id: "1", pk: "a" }))).code, 409);
});

await check("an ETag that is no longer current", async () => {
  const { etag } = await container.item("1", "a").read();
  await container.item("1", "a").replace({ id: "1", pk: "a", n: 5 }, { accessCondition: { type: "IfMatch", condition: etag } });
  const error = await fails(() => container.item("1", "a").replace({ id: "1", pk: "a", n: 6 }, { accessCondition: { type: "IfMatch", condition: etag } }));
  equal(error.code, 412);
  equal((await container.item("1", "a").read()).resource.n, 5);
});

await check("a replace with another id is a rename", async () => {
  await container.items.create({ id: "old", pk: "a" });
  await container.item("old", "a").replace({ id: "new", pk: "a" });
  equal((await container.item("old", "a").read()).statusCode, 404);
  equal((await container.item("new", "a").delete()).statusCode, 204);
});

await check("patch: operations alone, with a condition, and move", async () => {
  await container.items.create({ id: "p", pk: "a", n: 1, from: { x: 7 }, list: [1] });
  const { resource } = await container.item("p", "a").patch([
    { op: "set", path: "/name", value: "x" }, { op: "incr", path: "/n", value: 2 }, { op: "add", path: "/list/-", value: 2 }, { op: "move", from: "/from/x", path: "/to" },
  ]);
  equal([resource.name, resource.n, resource.list, resource.from, resource.to], ["x", 3, [1, 2], {}, 7]);
  const refused = await fails(() => container.item("p", "a").patch({ condition: "from c where c.n > 100", operations: [{ op: "set", path: "/n", value: 0 }] }));
  equal(refused.code, 412);
  const applied = await container.item("p", "a").patch({ condition: "from c where c.n = 3", operations: [{ op: "set", path: "/n", value: 4 }] });
  equal(applied.resource.n, 4);
  equal((await fails(() => container.item("p", "a").patch([{ op: "replace", path: "/none", value: 1 }]))).code, 400);
  await container.item("p", "a").delete();
});

await check("a batch happens as a whole", async () => {
  const { result } = await container.items.batch([
    { operationType: "Create", resourceBody: { id: "b1", pk: "b", n: 1 } }, { operationType: "Upsert", resourceBody: { id: "b2", pk: "b" } }, { operationType: "Read", id: "b1" },
  ], "b");
  equal(result.map((r) => r.statusCode), [201, 201, 200]);
  equal(result[2].resourceBody.n, 1);
});

await check("a batch happens not at all", async () => {
  const { result, code } = await container.items.batch([
    { operationType: "Create", resourceBody: { id: "b3", pk: "b" } }, { operationType: "Create", resourceBody: { id: "b1", pk: "b" } },
  ], "b");
  equal([code, result.map((r) => r.statusCode)], [207, [424, 409]]);
  equal((await container.item("b3", "b").read()).statusCode, 404);
});

await check("ETags and conditions in a batch", async () => {
  const { etag } = await container.item("b1", "b").read();
  const change = (ifMatch, condition) => container.items.batch([
    { operationType: "Create", resourceBody: { id: "record", pk: "b" } },
    { operationType: "Patch", id: "b1", ifMatch, resourceBody: { condition, operations: [{ op: "incr", path: "/n", value: 1 }] } },
  ], "b");
  equal((await change('"stale"')).result.map((r) => r.statusCode), [424, 412]);
  equal((await change(undefined, "from c where c.n > 100")).result.map((r) => r.statusCode), [424, 412]);
  equal((await container.item("record", "b").read()).statusCode, 404);
  equal((await change(etag, "from c where c.n = 1")).result.map((r) => r.statusCode), [201, 200]);
  equal((await container.item("b1", "b").read()).resource.n, 2);
});

await check("a bulk over several partitions", async () => {
  const list = await container.items.executeBulkOperations([
    { operationType: BulkOperationType.Create, partitionKey: "x", resourceBody: { id: "k1", pk: "x" } },
    { operationType: BulkOperationType.Create, partitionKey: "y", resourceBody: { id: "k2", pk: "y" } },
    { operationType: BulkOperationType.Read, partitionKey: "x", id: "k1" },
  ]);
  equal(list.slice(0, 2).map((r) => r.response?.statusCode ?? r.error?.code), [201, 201]);
  await container.item("k1", "x").delete();
  await container.item("k2", "y").delete();
});

const many = [];
for (let i = 0; i < 12; i++) many.push({ id: `q${i}`, pk: `part${i % 3}`, n: (i * 7) % 12, kind: "query" });
for (const doc of many) await container.items.create(doc);
const query = async (text, options) => (await container.items.query(text, options).fetchAll()).resources;

await check("queries in one partition", async () => {
  equal(await query("SELECT VALUE c.n FROM c WHERE c.kind = 'query' ORDER BY c.n DESC", { partitionKey: "part0" }), [9, 6, 3, 0]);
  equal(await query({ query: "SELECT VALUE c.id FROM c WHERE c.n = @n", parameters: [{ name: "@n", value: 7 }] }, { partitionKey: "part1" }), ["q1"]);
  equal(await query("SELECT VALUE COUNT(1) FROM c", { partitionKey: "part2" }), [4]);
});

await check("queries over partitions: order, top, offset, count", async () => {
  equal((await query("SELECT * FROM c WHERE c.kind = 'query'")).length, 12);
  equal(await query("SELECT VALUE c.n FROM c WHERE c.kind = 'query' ORDER BY c.n", { maxItemCount: 5 }), [...Array(12).keys()]);
  equal((await query("SELECT c.n FROM c WHERE c.kind = 'query' ORDER BY c.n DESC")).map((d) => d.n)[0], 11);
  equal((await query("SELECT TOP 3 * FROM c WHERE c.kind = 'query'")).length, 3);
  equal(await query("SELECT VALUE c.n FROM c WHERE c.kind = 'query' ORDER BY c.n OFFSET 2 LIMIT 3"), [2, 3, 4]);
  equal(await query("SELECT VALUE COUNT(1) FROM c WHERE c.kind = 'query'"), [12]);
});

await check("what is not implemented says so", async () => {
  for (const text of ["SELECT DISTINCT c.pk FROM c", "SELECT VALUE SUM(c.n) FROM c", "SELECT * FROM c JOIN l IN c.list", "SELECT 1"]) {
    const error = await fails(() => query(text, { partitionKey: "part0" }));
    equal(error.code, 501, text);
  }
  const error = await fails(() => container.deleteAllItemsForPartitionKey("part0"));
  equal(error.code, 501);
});

await check("a prefix of a hierarchical key has no other tenant's documents", async () => {
  for (const [tenant, user] of [["t1", "u1"], ["t1", "u2"], ["t2", "u1"]]) await tenants.items.create({ id: `${tenant}${user}`, tenant, user });
  const { resources } = await tenants.items.query("SELECT VALUE c.id FROM c", { partitionKey: ["t1"] }).fetchAll();
  equal(resources.sort(), ["t1u1", "t1u2"]);
});

await check("the change feed of a partition key and of the container", async () => {
  const read = async (options) => {
    const ids = [];
    for await (const page of container.items.getChangeFeedIterator(options).getAsyncIterator()) {
      if (page.statusCode === 304) break;
      ids.push(...page.result.map((d) => d.id));
    }
    return ids;
  };
  const { ChangeFeedStartFrom } = await import("@azure/cosmos");
  equal(await read({ changeFeedStartFrom: ChangeFeedStartFrom.Beginning("part1") }), ["q1", "q4", "q7", "q10"]);
  equal((await read({ changeFeedStartFrom: ChangeFeedStartFrom.Beginning() })).length >= 14, true);
});

await check("documents expire", async () => {
  await container.items.create({ id: "short", pk: "a", ttl: 1 });
  equal((await container.item("short", "a").read()).statusCode, 200);
  await new Promise((r) => setTimeout(r, 2100));
  equal((await container.item("short", "a").read()).statusCode, 404);
});

await check("lists of databases, containers and documents", async () => {
  equal((await client.databases.readAll().fetchAll()).resources.some((d) => d.id === "js"), true);
  equal((await database.containers.readAll().fetchAll()).resources.map((c) => c.id).sort(), ["orders", "tenants"]);
  equal((await container.items.readAll().fetchAll()).resources.length >= 14, true);
});

await check("throughput", async () => {
  const { resource } = await container.readOffer();
  equal(resource.content.offerThroughput, 400);
  equal((await fails(() => database.containers.create({ id: "auto", partitionKey: "/pk", maxThroughput: 1500 }))).code, 400);
  const { container: auto } = await database.containers.create({ id: "auto", partitionKey: "/pk", maxThroughput: 4000 });
  equal((await auto.readOffer()).resource.content.offerAutopilotSettings.maxThroughput, 4000);
  await auto.delete();
});

await check("a wrong key", async () => {
  const wrong = new CosmosClient({ endpoint: process.env.CLIENTS_COSMOS, key: "d3Jvbmc=", connectionPolicy: { enableEndpointDiscovery: false } });
  equal((await fails(() => wrong.database("js").container("orders").item("1", "a").read())).code, 401);
});

await database.delete();
client.dispose();
finish("JavaScript Cosmos DB");
