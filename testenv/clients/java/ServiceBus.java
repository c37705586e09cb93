import com.azure.core.amqp.AmqpRetryOptions;
import com.azure.core.util.IterableStream;
import com.azure.messaging.servicebus.*;
import com.azure.messaging.servicebus.models.*;

import java.time.Duration;
import java.time.OffsetDateTime;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

/** What a Java program does with a queue, by the unmodified azure-messaging-servicebus. */
public final class ServiceBus {
    static final String QUEUE = "java";
    static final String CONNECTION = System.getenv("CLIENTS_SERVICEBUS");

    static ServiceBusClientBuilder builder(String connection) {
        return new ServiceBusClientBuilder().connectionString(connection)
            .retryOptions(new AmqpRetryOptions().setMaxRetries(1).setDelay(Duration.ofMillis(100)).setTryTimeout(Duration.ofSeconds(20)));
    }

    static ServiceBusReceiverClient receiver(SubQueue from, ServiceBusReceiveMode mode) {
        var b = builder(CONNECTION).receiver().queueName(QUEUE).receiveMode(mode).disableAutoComplete().maxAutoLockRenewDuration(Duration.ZERO);
        return (from == null ? b : b.subQueue(from)).buildClient();
    }

    static List<ServiceBusReceivedMessage> receive(ServiceBusReceiverClient from, int n) {
        List<ServiceBusReceivedMessage> all = new ArrayList<>();
        for (int i = 0; i < 10 && all.size() < n; i++) {
            IterableStream<ServiceBusReceivedMessage> some = from.receiveMessages(n - all.size(), Duration.ofSeconds(3));
            some.forEach(all::add);
        }
        Checks.equal(all.size(), n);
        return all;
    }

    public static void main(String[] args) {
        Checks c = new Checks(args);
        ServiceBusSenderClient sender = builder(CONNECTION).sender().queueName(QUEUE).buildClient();
        ServiceBusReceiverClient receiver = receiver(null, ServiceBusReceiveMode.PEEK_LOCK);
        ServiceBusReceiverClient dead = receiver(SubQueue.DEAD_LETTER_QUEUE, ServiceBusReceiveMode.PEEK_LOCK);

        c.check("send, receive, complete", () -> {
            ServiceBusMessage m = new ServiceBusMessage("{\"amount\":40}").setMessageId("m1").setSubject("s").setCorrelationId("c")
                .setContentType("application/json").setTimeToLive(Duration.ofMinutes(1));
            m.getApplicationProperties().put("number", 7);
            sender.sendMessage(m);
            ServiceBusReceivedMessage got = receive(receiver, 1).get(0);
            Checks.equal(List.of(got.getMessageId(), got.getSubject(), got.getCorrelationId(), got.getContentType(), got.getBody().toString()),
                List.of("m1", "s", "c", "application/json", "{\"amount\":40}"));
            Checks.equal(List.of(got.getDeliveryCount(), got.getApplicationProperties().get("number"), got.getState()), List.of(0L, 7, ServiceBusMessageState.ACTIVE));
            receiver.complete(got);
        });
        c.check("a message without an id gets one", () -> {
            sender.sendMessages(List.of(new ServiceBusMessage("1"), new ServiceBusMessage("2")));
            Set<String> ids = new HashSet<>();
            for (ServiceBusReceivedMessage m : receive(receiver, 2)) {
                ids.add(m.getMessageId());
                receiver.complete(m);
            }
            Checks.equal(ids.size(), 2);
        });
        c.check("a batch", () -> {
            ServiceBusMessageBatch batch = sender.createMessageBatch();
            for (int i = 0; i < 20; i++) {
                Checks.equal(batch.tryAddMessage(new ServiceBusMessage("" + i).setMessageId("b" + i)), true);
            }
            sender.sendMessages(batch);
            for (ServiceBusReceivedMessage m : receive(receiver, 20)) {
                receiver.complete(m);
            }
        });
        c.check("abandon counts and changes properties", () -> {
            sender.sendMessage(new ServiceBusMessage("x").setMessageId("a"));
            receiver.abandon(receive(receiver, 1).get(0), new AbandonOptions().setPropertiesToModify(Map.of("why", "later")));
            ServiceBusReceivedMessage m = receive(receiver, 1).get(0);
            Checks.equal(List.of(m.getDeliveryCount(), m.getApplicationProperties().get("why")), List.of(1L, "later"));
            receiver.complete(m);
        });
        c.check("defer and receive by sequence number", () -> {
            sender.sendMessage(new ServiceBusMessage("x").setMessageId("d"));
            ServiceBusReceivedMessage m = receive(receiver, 1).get(0);
            receiver.defer(m);
            ServiceBusReceivedMessage again = receiver.receiveDeferredMessage(m.getSequenceNumber());
            Checks.equal(List.of(again.getMessageId(), again.getDeliveryCount()), List.of("d", 1L));
            receiver.complete(again);
            // The client turns the service's message-not-found into an error of its own without a reason.
            Checks.fails(ServiceBusException.class, () -> receiver.receiveDeferredMessage(m.getSequenceNumber()));
        });
        c.check("dead-letter and the dead-letter queue", () -> {
            sender.sendMessage(new ServiceBusMessage("x").setMessageId("dl"));
            receiver.deadLetter(receive(receiver, 1).get(0), new DeadLetterOptions().setDeadLetterReason("Bad").setDeadLetterErrorDescription("very"));
            ServiceBusReceivedMessage m = receive(dead, 1).get(0);
            Checks.equal(List.of(m.getMessageId(), m.getDeadLetterReason(), m.getDeadLetterErrorDescription(), m.getDeadLetterSource()), List.of("dl", "Bad", "very", QUEUE));
            dead.complete(m);
        });
        c.check("too many deliveries", () -> {
            sender.sendMessage(new ServiceBusMessage("x").setMessageId("poison"));
            for (int i = 0; i < 5; i++) {
                receiver.abandon(receive(receiver, 1).get(0));
            }
            ServiceBusReceivedMessage m = receive(dead, 1).get(0);
            Checks.equal(List.of(m.getMessageId(), m.getDeadLetterReason()), List.of("poison", "MaxDeliveryCountExceeded"));
            dead.complete(m);
        });
        c.check("peek", () -> {
            sender.sendMessages(List.of(new ServiceBusMessage("1").setMessageId("p1"), new ServiceBusMessage("2").setMessageId("p2")));
            List<ServiceBusReceivedMessage> got = receive(receiver, 2);
            List<String> ids = new ArrayList<>();
            receiver.peekMessages(2, got.get(0).getSequenceNumber()).forEach(m -> ids.add(m.getMessageId()));
            Checks.equal(ids, List.of("p1", "p2"));
            got.forEach(receiver::complete);
        });
        c.check("schedule and cancel", () -> {
            sender.scheduleMessage(new ServiceBusMessage("x").setMessageId("s1"), OffsetDateTime.now().plusNanos(700_000_000));
            long other = sender.scheduleMessage(new ServiceBusMessage("x").setMessageId("s2"), OffsetDateTime.now().plusMinutes(1));
            sender.cancelScheduledMessage(other);
            ServiceBusReceivedMessage m = receive(receiver, 1).get(0);
            Checks.equal(m.getMessageId(), "s1");
            receiver.complete(m);
        });
        c.check("renew a lock", () -> {
            sender.sendMessage(new ServiceBusMessage("x").setMessageId("lock"));
            ServiceBusReceivedMessage m = receive(receiver, 1).get(0);
            Checks.equal(receiver.renewMessageLock(m).isAfter(OffsetDateTime.now().plusSeconds(8)), true);
            receiver.complete(m);
        });
        c.check("receive and delete", () -> {
            sender.sendMessage(new ServiceBusMessage("x").setMessageId("rd"));
            try (ServiceBusReceiverClient r = receiver(null, ServiceBusReceiveMode.RECEIVE_AND_DELETE)) {
                Checks.equal(receive(r, 1).get(0).getMessageId(), "rd");
            }
        });
        c.check("a message that is too large", () -> {
            Checks.equal(Checks.fails(ServiceBusException.class, () -> sender.sendMessage(new ServiceBusMessage("x".repeat(300_000)))).getReason(),
                ServiceBusFailureReason.MESSAGE_SIZE_EXCEEDED);
            sender.sendMessage(new ServiceBusMessage("x").setMessageId("after"));
            receiver.complete(receive(receiver, 1).get(0));
        });
        c.check("a queue that does not exist", () -> {
            try (ServiceBusSenderClient s = builder(CONNECTION).sender().queueName("nowhere").buildClient()) {
                Checks.equal(Checks.fails(ServiceBusException.class, () -> s.sendMessage(new ServiceBusMessage("x"))).getReason(),
                    ServiceBusFailureReason.MESSAGING_ENTITY_NOT_FOUND);
            }
        });
        c.check("a wrong key", () -> {
            String wrong = CONNECTION.replace("SAS_KEY_VALUE", "wrong");
            try (ServiceBusSenderClient s = builder(wrong).sender().queueName(QUEUE).buildClient()) {
                Checks.equal(Checks.fails(ServiceBusException.class, () -> s.sendMessage(new ServiceBusMessage("x"))).getReason(),
                    ServiceBusFailureReason.UNAUTHORIZED);
            }
        });

        sender.close();
        receiver.close();
        dead.close();
        c.finish("Java Service Bus");
    }
}
