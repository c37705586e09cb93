// What a JavaScript program does with a queue, by the unmodified @azure/service-bus.
import { ServiceBusClient } from "@azure/service-bus";
import { check, equal, fails, finish } from "./checks.js";

const queue = "js";
const client = new ServiceBusClient(process.env.CLIENTS_SERVICEBUS, { retryOptions: { maxRetries: 1, timeoutInMs: 10_000 } });
const sender = client.createSender(queue);
const receiver = client.createReceiver(queue);
const deadLetters = client.createReceiver(queue, { subQueueType: "deadLetter" });

async function receive(from = receiver, n = 1) {
  const all = [];
  while (all.length < n) {
    const some = await from.receiveMessages(n - all.length, { maxWaitTimeInMs: 5000 });
    if (some.length === 0) throw new Error(`only ${all.length} of ${n} messages arrived`);
    all.push(...some);
  }
  return all;
}

async function empty(from = receiver) {
  equal((await from.receiveMessages(1, { maxWaitTimeInMs: 300 })).length, 0, "messages left");
}

await check("send, receive, complete", async () => {
  await sender.sendMessages({
    body: { amount: 40 }, messageId: "m1", subject: "s", correlationId: "c", contentType: "application/json",
    applicationProperties: { text: "t", number: 7, flag: true }, timeToLive: 60_000,
  });
  const [m] = await receive();
  equal([m.messageId, m.subject, m.correlationId, m.contentType, m.body.amount], ["m1", "s", "c", "application/json", 40]);
  equal(m.applicationProperties, { text: "t", number: 7, flag: true });
  equal([m.deliveryCount, m.timeToLive, m.state], [0, 60_000, "active"]);
  if (!(m.sequenceNumber.toNumber() > 0) || !(m.lockedUntilUtc > new Date())) throw new Error("no sequence number or lock");
  await receiver.completeMessage(m);
  await empty();
});

await check("a message without an id gets one", async () => {
  await sender.sendMessages([{ body: "1" }, { body: "2" }]);
  const ms = await receive(receiver, 2);
  equal(new Set(ms.map((m) => m.messageId)).size, 2, "different ids");
  equal(ms.every((m) => m.messageId.length === 32), true, "ids of 32 characters");
  for (const m of ms) await receiver.completeMessage(m);
});

await check("a batch", async () => {
  const batch = await sender.createMessageBatch();
  for (let i = 0; i < 20; i++) equal(batch.tryAddMessage({ body: i, messageId: `b${i}` }), true);
  await sender.sendMessages(batch);
  const ms = await receive(receiver, 20);
  equal(ms.map((m) => m.body), [...Array(20).keys()]);
  for (const m of ms) await receiver.completeMessage(m);
});

await check("bodies of every kind", async () => {
  const bodies = ["text", 7, true, null, [1, { a: null }], { a: [1] }, Buffer.from([0, 255])];
  for (const body of bodies) await sender.sendMessages({ body });
  await sender.sendMessages({ bodyType: "value", body: "v" });
  await sender.sendMessages({ bodyType: "sequence", body: [[1, "a"]] });
  const ms = await receive(receiver, bodies.length + 2);
  equal(ms.slice(0, -3).map((m) => m.body), bodies.slice(0, -1));
  for (const m of ms) await receiver.completeMessage(m);
});

await check("abandon counts and changes properties", async () => {
  await sender.sendMessages({ body: "x", messageId: "a" });
  let [m] = await receive();
  await receiver.abandonMessage(m, { why: "later" });
  [m] = await receive();
  equal([m.deliveryCount, m.applicationProperties.why], [1, "later"]);
  await receiver.completeMessage(m);
});

await check("defer and receive by sequence number", async () => {
  await sender.sendMessages({ body: "x", messageId: "d" });
  let [m] = await receive();
  const number = m.sequenceNumber;
  await receiver.deferMessage(m);
  await empty();
  [m] = await receiver.receiveDeferredMessages(number);
  equal([m.messageId, m.deliveryCount, m.state], ["d", 1, "deferred"]);
  await receiver.completeMessage(m);
  equal((await receiver.receiveDeferredMessages(number).catch((e) => e)).code, "MessageNotFound");
});

await check("dead-letter and the dead-letter queue", async () => {
  await sender.sendMessages({ body: "x", messageId: "dl", applicationProperties: { keep: 1 } });
  let [m] = await receive();
  await receiver.deadLetterMessage(m, { deadLetterReason: "Bad", deadLetterErrorDescription: "very", more: 2 });
  [m] = await deadLetters.peekMessages(1, { fromSequenceNumber: m.sequenceNumber });
  [m] = await receive(deadLetters);
  equal([m.messageId, m.deadLetterReason, m.deadLetterErrorDescription, m.deadLetterSource], ["dl", "Bad", "very", queue]);
  equal([m.applicationProperties.keep, m.applicationProperties.more], [1, 2]);
  await deadLetters.completeMessage(m);
  await empty(deadLetters);
});

await check("too many deliveries", async () => {
  await sender.sendMessages({ body: "x", messageId: "poison" });
  for (let i = 0; i < 5; i++) await receiver.abandonMessage((await receive())[0]);
  const [m] = await receive(deadLetters);
  equal([m.messageId, m.deadLetterReason], ["poison", "MaxDeliveryCountExceeded"]);
  await deadLetters.completeMessage(m);
});

await check("peek", async () => {
  await sender.sendMessages([{ body: 1, messageId: "p1" }, { body: 2, messageId: "p2" }]);
  const ms = await receive(receiver, 2);
  const from = ms[0].sequenceNumber;
  const peeker = client.createReceiver(queue);
  equal((await peeker.peekMessages(2, { fromSequenceNumber: from })).map((m) => m.messageId), ["p1", "p2"]);
  await peeker.close();
  for (const m of ms) await receiver.completeMessage(m);
});

await check("schedule and cancel", async () => {
  const at = new Date(Date.now() + 700);
  const [number] = await sender.scheduleMessages({ body: "x", messageId: "s1" }, at);
  const [other] = await sender.scheduleMessages({ body: "x", messageId: "s2" }, new Date(Date.now() + 60_000));
  const [peeked] = await receiver.peekMessages(1, { fromSequenceNumber: number });
  equal(peeked.state, "scheduled");
  await sender.cancelScheduledMessages(other);
  equal((await fails(() => sender.cancelScheduledMessages(other))).code, "MessageNotFound");
  const [m] = await receive();
  equal(m.messageId, "s1");
  equal(m.enqueuedTimeUtc >= new Date(at - 50), true, "not before its time");
  await receiver.completeMessage(m);
});

await check("renew a lock, and settle after it has ended", async () => {
  await sender.sendMessages({ body: "x", messageId: "lock" });
  const [m] = await receive();
  const before = m.lockedUntilUtc;
  await new Promise((r) => setTimeout(r, 50));
  equal((await receiver.renewMessageLock(m)) > before, true, "renewed");
  await receiver.completeMessage(m);
  equal((await fails(() => receiver.renewMessageLock(m))).code !== undefined, true);
});

await check("receive and delete", async () => {
  await sender.sendMessages({ body: "x", messageId: "rd" });
  const r = client.createReceiver(queue, { receiveMode: "receiveAndDelete" });
  equal((await receive(r)).map((m) => m.messageId), ["rd"]);
  await r.close();
  await empty();
});

await check("subscribe", async () => {
  const seen = [];
  const r = client.createReceiver(queue);
  const done = new Promise((resolve, reject) => {
    r.subscribe({
      processMessage: async (m) => { seen.push(m.messageId); if (seen.length === 5) resolve(); },
      processError: async (args) => reject(args.error),
    }, { maxConcurrentCalls: 2 });
  });
  await sender.sendMessages([1, 2, 3, 4, 5].map((i) => ({ body: i, messageId: `sub${i}` })));
  await done;
  await new Promise((r) => setTimeout(r, 200)); // for the last to be completed
  await r.close();
  equal(seen.sort(), ["sub1", "sub2", "sub3", "sub4", "sub5"]);
  await empty();
});

await check("a message that is too large", async () => {
  const error = await fails(() => sender.sendMessages({ body: "x".repeat(300_000) }));
  equal(error.code, "MessageSizeExceeded");
  await sender.sendMessages({ body: "x", messageId: "after" });
  await receiver.completeMessage((await receive())[0]);
});

await check("a queue that does not exist", async () => {
  const s = client.createSender("nowhere");
  equal((await fails(() => s.sendMessages({ body: "x" }))).code, "MessagingEntityNotFound");
});

await check("a wrong key", async () => {
  const wrong = process.env.CLIENTS_SERVICEBUS.replace(/SharedAccessKey=[^;]*/, "SharedAccessKey=wrong");
  const c = new ServiceBusClient(wrong, { retryOptions: { maxRetries: 0 } });
  equal((await fails(() => c.createSender(queue).sendMessages({ body: "x" }))).code, "UnauthorizedAccess");
  await c.close();
});

await client.close();
finish("JavaScript Service Bus");
