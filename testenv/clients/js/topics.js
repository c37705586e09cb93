// What a JavaScript program does with a topic, its subscriptions and their rules, by the unmodified @azure/service-bus.
import { ServiceBusClient } from "@azure/service-bus";
import { check, equal, fails, finish } from "./checks.js";

const topic = "js-events";
const client = new ServiceBusClient(process.env.CLIENTS_SERVICEBUS, { retryOptions: { maxRetries: 1, timeoutInMs: 10_000 } });
const sender = client.createSender(topic);
const all = client.createReceiver(topic, "all");
const large = client.createReceiver(topic, "large");
const blue = client.createReceiver(topic, "blue");

async function receive(from, n = 1) {
  const ms = [];
  while (ms.length < n) {
    const some = await from.receiveMessages(n - ms.length, { maxWaitTimeInMs: 5000 });
    if (some.length === 0) throw new Error(`only ${ms.length} of ${n} messages arrived`);
    ms.push(...some);
  }
  return ms;
}

async function completed(from, n = 1) {
  const ms = await receive(from, n);
  for (const m of ms) await from.completeMessage(m);
  return ms;
}

const ids = (ms) => ms.map((m) => m.messageId);

await check("each subscription gets what its rules select", async () => {
  await sender.sendMessages([
    { body: 1, messageId: "small", subject: "order", applicationProperties: { amount: 40, color: "blue" } },
    { body: 2, messageId: "large", subject: "orders", applicationProperties: { amount: 400, color: "blue" } },
    { body: 3, messageId: "other", subject: "invoice", applicationProperties: { amount: 4000 } },
  ]);
  equal(ids(await completed(all, 3)), ["small", "large", "other"]);
  const [m] = await completed(large);
  equal([m.messageId, m.applicationProperties.size, m.applicationProperties.RuleName], ["large", "large", "amount"]);
  equal(ids(await completed(blue)), ["small"]);
});

await check("dead letters of a subscription", async () => {
  await sender.sendMessages({ body: "x", messageId: "dead" });
  await all.deadLetterMessage((await receive(all))[0], { deadLetterReason: "Bad" });
  const dead = client.createReceiver(topic, "all", { subQueueType: "deadLetter" });
  const [m] = await completed(dead);
  equal([m.messageId, m.deadLetterReason, m.deadLetterSource], ["dead", "Bad", `${topic}/Subscriptions/all`]);
  await dead.close();
});

await check("schedule on a topic", async () => {
  await sender.scheduleMessages({ body: "x", messageId: "later" }, new Date(Date.now() + 500));
  equal(ids(await completed(all)), ["later"]);
});

await check("rules are listed, added and removed", async () => {
  const rules = client.createRuleManager(topic, "all");
  const names = async () => { const ns = []; for await (const r of rules.listRules()) ns.push(r.name); return ns; };
  equal(await names(), ["$Default"]);
  await rules.createRule("sql", { sqlExpression: "color = 'red'" }, { sqlExpression: "SET seen = TRUE" });
  await rules.createRule("correlation", { correlationId: "c1", applicationProperties: { color: "green" } });
  await rules.deleteRule("$Default");
  equal(await names(), ["sql", "correlation"]);
  const listed = [];
  for await (const r of rules.listRules()) listed.push(r);
  equal([listed[0].filter.sqlExpression, listed[0].action.sqlExpression], ["color = 'red'", "SET seen = TRUE"]);
  equal([listed[1].filter.correlationId, listed[1].filter.applicationProperties.color], ["c1", "green"]);
  await fails(() => rules.createRule("sql", { sqlExpression: "1=1" }));
  await fails(() => rules.createRule("bad", { sqlExpression: "color =" }));
  await fails(() => rules.deleteRule("nobody"));
  await sender.sendMessages([
    { body: 1, messageId: "red", applicationProperties: { color: "red" } },
    { body: 2, messageId: "green", correlationId: "c1", applicationProperties: { color: "green" } },
    { body: 3, messageId: "none" },
  ]);
  const ms = await completed(all, 2);
  equal(ids(ms), ["red", "green"]);
  equal(ms[0].applicationProperties.seen, true);
});

await check("a subscription that does not exist", async () => {
  const r = client.createReceiver(topic, "nobody");
  equal((await fails(() => r.receiveMessages(1, { maxWaitTimeInMs: 1000 }))).code, "MessagingEntityNotFound");
});

await client.close();
finish("JavaScript Service Bus topics");
