// What a JavaScript program does with a queue that requires sessions, by the unmodified @azure/service-bus.
import { ServiceBusClient } from "@azure/service-bus";
import { check, equal, fails, finish } from "./checks.js";

const queue = "js-sessions";
const client = new ServiceBusClient(process.env.CLIENTS_SERVICEBUS, { retryOptions: { maxRetries: 0, timeoutInMs: 3_000 } });
const sender = client.createSender(queue);

const message = (sessionId, messageId) => ({ sessionId, messageId, body: messageId });

async function receive(from, n = 1) {
  const ms = [];
  while (ms.length < n) {
    const some = await from.receiveMessages(n - ms.length, { maxWaitTimeInMs: 3000 });
    if (some.length === 0) throw new Error(`only ${ms.length} of ${n} messages arrived`);
    ms.push(...some);
  }
  return ms;
}

const ids = (ms) => ms.map((m) => m.messageId);

await check("a session by its name, in order", async () => {
  await sender.sendMessages([message("a", "a1"), message("b", "b1"), message("a", "a2")]);
  const r = await client.acceptSession(queue, "a");
  equal(r.sessionId, "a");
  equal(r.sessionLockedUntilUtc > new Date(), true, "locked");
  const ms = await receive(r, 2);
  equal(ids(ms), ["a1", "a2"]);
  for (const m of ms) await r.completeMessage(m);
  await r.close();
});

await check("the next session", async () => {
  const r = await client.acceptNextSession(queue);
  equal(r.sessionId, "b");
  const [m] = await receive(r);
  await r.abandonMessage(m);
  const [again] = await receive(r);
  equal([again.messageId, again.deliveryCount, again.sessionId], ["b1", 1, "b"]);
  await r.completeMessage(again);
  await r.close();
});

await check("no session is a timeout", async () => {
  equal((await fails(() => client.acceptNextSession(queue))).code, "ServiceTimeout");
});

await check("a session that another has locked", async () => {
  const r = await client.acceptSession(queue, "held");
  equal((await fails(() => client.acceptSession(queue, "held"))).code, "SessionCannotBeLocked");
  await r.close();
});

await check("state and renewal", async () => {
  const r = await client.acceptSession(queue, "state");
  equal(await r.getSessionState(), null);
  await r.setSessionState(Buffer.from("so far"));
  equal(String(await r.getSessionState()), "so far");
  const before = r.sessionLockedUntilUtc;
  await new Promise((f) => setTimeout(f, 50));
  equal((await r.renewSessionLock()) > before, true, "renewed");
  await r.setSessionState(null);
  await r.close();
});

await check("defer, peek and dead-letter in a session", async () => {
  await sender.sendMessages([message("d", "d1"), message("e", "e1")]);
  const r = await client.acceptSession(queue, "d");
  const [m] = await receive(r);
  await r.deferMessage(m);
  equal(ids(await r.peekMessages(10, { fromSequenceNumber: m.sequenceNumber })), ["d1"]);
  const [again] = await r.receiveDeferredMessages(m.sequenceNumber);
  await r.deadLetterMessage(again, { deadLetterReason: "Bad" });
  await r.close();
  const dead = client.createReceiver(queue, { subQueueType: "deadLetter" });
  const [d] = await receive(dead);
  equal([d.messageId, d.sessionId, d.deadLetterReason], ["d1", "d", "Bad"]);
  await dead.completeMessage(d);
  const e = await client.acceptSession(queue, "e");
  await e.completeMessage((await receive(e))[0]);
  await e.close();
});

await check("a message without a session", async () => {
  await fails(() => sender.sendMessages({ body: "x" }));
});

await client.close();
finish("JavaScript Service Bus sessions");
