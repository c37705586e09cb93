import com.azure.cosmos.*;
import com.azure.cosmos.models.*;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

/** What a Java program does with a container, by the unmodified azure-cosmos in gateway mode. */
public final class Cosmos {
    static CosmosContainer container;

    @SafeVarargs
    static Map<String, Object> doc(String id, String pk, Map.Entry<String, Object>... more) {
        Map<String, Object> d = new HashMap<>(Map.of("id", id, "pk", pk));
        Arrays.stream(more).forEach(e -> d.put(e.getKey(), e.getValue()));
        return d;
    }

    @SuppressWarnings("unchecked")
    static Map<String, Object> read(String id, String pk) {
        return container.readItem(id, new PartitionKey(pk), Map.class).getItem();
    }

    static int status(Checks.Run run) throws Exception {
        return Checks.fails(CosmosException.class, run).getStatusCode();
    }

    static <T> List<T> query(String text, String pk, Class<T> kind) {
        CosmosQueryRequestOptions o = new CosmosQueryRequestOptions();
        if (pk != null) {
            o.setPartitionKey(new PartitionKey(pk));
        }
        return container.queryItems(text, o, kind).stream().collect(Collectors.toList());
    }

    static List<Integer> codes(CosmosBatchResponse r) {
        return r.getResults().stream().map(CosmosBatchOperationResult::getStatusCode).collect(Collectors.toList());
    }

    public static void main(String[] args) {
        System.setProperty("COSMOS.HTTP_CONNECTION_WITHOUT_TLS_ALLOWED", "true");
        Checks c = new Checks(args);
        CosmosClient client = new CosmosClientBuilder().endpoint(System.getenv("CLIENTS_COSMOS")).key(System.getenv("CLIENTS_COSMOS_KEY"))
            .gatewayMode().endpointDiscoveryEnabled(false).contentResponseOnWriteEnabled(true).buildClient();
        client.createDatabaseIfNotExists("java");
        CosmosDatabase database = client.getDatabase("java");
        database.createContainerIfNotExists(new CosmosContainerProperties("orders", "/pk").setDefaultTimeToLiveInSeconds(-1));
        container = database.getContainer("orders");

        c.check("create, read, replace, upsert, delete", () -> {
            CosmosItemResponse<Map<String, Object>> created = container.createItem(doc("1", "a", Map.entry("n", 1)));
            Checks.equal(List.of(created.getStatusCode(), created.getRequestCharge() > 0), List.of(201, true));
            Checks.equal(read("1", "a").get("n"), 1);
            container.replaceItem(doc("1", "a", Map.entry("n", 2)), "1", new PartitionKey("a"), null);
            Checks.equal(container.upsertItem(doc("2", "a")).getStatusCode(), 201);
            container.deleteItem("2", new PartitionKey("a"), null);
            Checks.equal(status(() -> read("2", "a")), 404);
        });
        c.check("a second create conflicts", () -> Checks.equal(status(() -> container.createItem(doc("1", "a"))), 409));
        c.check("an ETag that is no longer current", () -> {
            CosmosItemRequestOptions o = new CosmosItemRequestOptions().setIfMatchETag((String) read("1", "a").get("_etag"));
            container.replaceItem(doc("1", "a", Map.entry("n", 5)), "1", new PartitionKey("a"), o);
            Checks.equal(status(() -> container.replaceItem(doc("1", "a", Map.entry("n", 6)), "1", new PartitionKey("a"), o)), 412);
            Checks.equal(read("1", "a").get("n"), 5);
        });
        c.check("a replace with another id is a rename", () -> {
            container.createItem(doc("old", "a"));
            container.replaceItem(doc("new", "a"), "old", new PartitionKey("a"), null);
            Checks.equal(status(() -> read("old", "a")), 404);
            container.deleteItem("new", new PartitionKey("a"), null);
        });
        c.check("patch with a condition, and move", () -> {
            container.createItem(doc("p", "a", Map.entry("n", 1), Map.entry("from", Map.of("x", 7))));
            container.patchItem("p", new PartitionKey("a"), CosmosPatchOperations.create().increment("/n", 2).move("/from/x", "/to"), Map.class);
            Map<String, Object> got = read("p", "a");
            Checks.equal(List.of(got.get("n"), got.get("from"), got.get("to")), List.of(3, Map.of(), 7));
            CosmosPatchOperations change = CosmosPatchOperations.create().set("/n", 4);
            CosmosPatchItemRequestOptions o = new CosmosPatchItemRequestOptions().setFilterPredicate("from c where c.n > 100");
            Checks.equal(status(() -> container.patchItem("p", new PartitionKey("a"), change, o, Map.class)), 412);
            Checks.equal(container.patchItem("p", new PartitionKey("a"), change, o.setFilterPredicate("from c where c.n = 3"), Map.class).getStatusCode(), 200);
        });
        c.check("a batch happens as a whole or not at all", () -> {
            CosmosBatch whole = CosmosBatch.createCosmosBatch(new PartitionKey("b"));
            whole.createItemOperation(doc("b1", "b", Map.entry("n", 1)));
            whole.upsertItemOperation(doc("b2", "b"));
            whole.readItemOperation("b1");
            Checks.equal(codes(container.executeCosmosBatch(whole)), List.of(201, 201, 200));
            CosmosBatch none = CosmosBatch.createCosmosBatch(new PartitionKey("b"));
            none.createItemOperation(doc("b3", "b"));
            none.createItemOperation(doc("b1", "b"));
            CosmosBatchResponse r = container.executeCosmosBatch(none);
            Checks.equal(List.of(r.isSuccessStatusCode(), r.getStatusCode(), codes(r)), List.of(false, 409, List.of(424, 409)));
            Checks.equal(status(() -> read("b3", "b")), 404);
        });
        c.check("ETags and conditions in a batch", () -> {
            String etag = (String) read("b1", "b").get("_etag");
            for (String[] tt : new String[][] {{"\"stale\"", null, "412"}, {null, "from c where c.n > 100", "412"}, {etag, "from c where c.n = 1", "200"}}) {
                CosmosBatch batch = CosmosBatch.createCosmosBatch(new PartitionKey("b"));
                batch.createItemOperation(doc("record", "b"));
                CosmosBatchPatchItemRequestOptions o = new CosmosBatchPatchItemRequestOptions();
                if (tt[0] != null) {
                    o.setIfMatchETag(tt[0]);
                }
                if (tt[1] != null) {
                    o.setFilterPredicate(tt[1]);
                }
                batch.patchItemOperation("b1", CosmosPatchOperations.create().increment("/n", 1), o);
                Checks.equal(codes(container.executeCosmosBatch(batch)), tt[2].equals("200") ? List.of(201, 200) : List.of(424, 412));
            }
            Checks.equal(read("b1", "b").get("n"), 2);
        });
        c.check("bulk", () -> {
            List<CosmosItemOperation> ops = IntStream.range(0, 10)
                .mapToObj(i -> CosmosBulkOperations.getCreateItemOperation(doc("k" + i, "bulk" + i % 3), new PartitionKey("bulk" + i % 3))).collect(Collectors.toList());
            List<Integer> got = new ArrayList<>();
            container.executeBulkOperations(ops).forEach(r -> got.add(r.getResponse().getStatusCode()));
            Checks.equal(got, Collections.nCopies(10, 201));
        });
        for (int i = 0; i < 12; i++) {
            container.createItem(doc("q" + i, "part" + i % 3, Map.entry("n", i * 7 % 12), Map.entry("kind", "query")));
        }
        c.check("queries in one partition", () -> {
            Checks.equal(query("SELECT VALUE c.n FROM c ORDER BY c.n DESC", "part0", Integer.class), List.of(9, 6, 3, 0));
            Checks.equal(query("SELECT VALUE COUNT(1) FROM c", "part2", Integer.class), List.of(4));
        });
        c.check("queries over partitions: order, top, offset, count", () -> {
            Checks.equal(query("SELECT * FROM c WHERE c.kind = 'query'", null, Map.class).size(), 12);
            Checks.equal(query("SELECT VALUE c.n FROM c WHERE c.kind = 'query' ORDER BY c.n", null, Integer.class), IntStream.range(0, 12).boxed().collect(Collectors.toList()));
            Checks.equal(query("SELECT TOP 3 * FROM c WHERE c.kind = 'query'", null, Map.class).size(), 3);
            Checks.equal(query("SELECT VALUE c.n FROM c WHERE c.kind = 'query' ORDER BY c.n OFFSET 2 LIMIT 3", null, Integer.class), List.of(2, 3, 4));
            Checks.equal(query("SELECT VALUE COUNT(1) FROM c WHERE c.kind = 'query'", null, Integer.class), List.of(12));
        });
        c.check("what is not implemented says so", () -> {
            for (String text : List.of("SELECT DISTINCT c.pk FROM c", "SELECT VALUE SUM(c.n) FROM c", "SELECT 1")) {
                Checks.equal(status(() -> query(text, "part0", Map.class)), 501);
            }
        });
        c.check("the change feed", () -> {
            CosmosChangeFeedRequestOptions o = CosmosChangeFeedRequestOptions.createForProcessingFromBeginning(FeedRange.forLogicalPartition(new PartitionKey("part1")));
            List<Object> ids = new ArrayList<>();
            container.queryChangeFeed(o, Map.class).iterableByPage().iterator().next().getResults().forEach(d -> ids.add(d.get("id")));
            Checks.equal(ids, List.of("q1", "q4", "q7", "q10"));
        });
        c.check("documents expire", () -> {
            container.createItem(doc("short", "a", Map.entry("ttl", 1)));
            Thread.sleep(2100);
            Checks.equal(status(() -> read("short", "a")), 404);
        });
        c.check("throughput", () -> Checks.equal(container.readThroughput().getProperties().getManualThroughput(), 400));

        database.delete();
        client.close();
        c.finish("Java Cosmos DB");
    }
}
