// What a JavaScript program does with the administration API, by the unmodified @azure/service-bus. The client knows only
// https on the port of AMQP, so that its requests are sent to the address of the management endpoint instead.
import { ServiceBusAdministrationClient } from "@azure/service-bus";
import { check, equal, fails, finish } from "./checks.js";

const client = new ServiceBusAdministrationClient(process.env.CLIENTS_SERVICEBUS, { retryOptions: { maxRetries: 0 } });
client.pipeline.addPolicy({
  name: "redirect",
  sendRequest(request, next) {
    const url = new URL(request.url);
    request.url = `http://${process.env.CLIENTS_SERVICEBUS_ADMIN}${url.pathname}${url.search}`;
    request.allowInsecureConnection = true;
    return next(request);
  },
});

async function all(pages) {
  const items = [];
  for await (const item of pages) items.push(item);
  return items;
}

await check("a queue", async () => {
  const made = await client.createQueue("js-made", { lockDuration: "PT30S", maxDeliveryCount: 3, requiresSession: true, userMetadata: "a & b" });
  equal([made.name, made.lockDuration, made.maxDeliveryCount, made.requiresSession, made.userMetadata], ["js-made", "PT30S", 3, true, "a & b"]);
  const changed = await client.updateQueue({ ...made, maxDeliveryCount: 4 });
  equal(changed.maxDeliveryCount, 4);
  const counts = await client.getQueueRuntimeProperties("js-made");
  equal([counts.activeMessageCount, counts.totalMessageCount], [0, 0]);
  const page = await client.listQueues().byPage({ maxPageSize: 2 }).next();
  equal(page.value.length, 2, "a page");
  equal((await all(client.listQueues())).some((q) => q.name === "js-made"), true, "listed");
  await fails(() => client.createQueue("js-made"));
  equal(await client.queueExists("js-made"), true);
  await client.deleteQueue("js-made");
  equal(await client.queueExists("js-made"), false);
});

await check("a topic, a subscription and rules", async () => {
  await client.createTopic("js-topic");
  await client.createSubscription("js-topic", "sub", { defaultRuleOptions: { name: "first", filter: { sqlExpression: "a = 1" } } });
  await client.createRule("js-topic", "sub", "second", { correlationId: "c", applicationProperties: { n: 7, s: "x" } }, { sqlExpression: "SET b = 2" });
  const rules = await all(client.listRules("js-topic", "sub"));
  equal(rules.map((r) => r.name), ["first", "second"]);
  equal(rules[0].filter.sqlExpression, "a = 1");
  equal([rules[1].filter.correlationId, rules[1].filter.applicationProperties, rules[1].action.sqlExpression], ["c", { n: 7, s: "x" }, "SET b = 2"]);
  const topic = await client.getTopicRuntimeProperties("js-topic");
  equal(topic.subscriptionCount, 1);
  const sub = await client.getSubscription("js-topic", "sub");
  equal([sub.topicName, sub.subscriptionName, sub.status], ["js-topic", "sub", "Active"]);
  await client.deleteRule("js-topic", "sub", "first");
  await client.deleteSubscription("js-topic", "sub");
  equal(await client.subscriptionExists("js-topic", "sub"), false);
  await client.deleteTopic("js-topic");
});

await check("the namespace", async () => {
  equal((await client.getNamespaceProperties()).messagingSku, "Standard");
});

finish("JavaScript Service Bus administration");
