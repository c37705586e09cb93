import com.azure.messaging.servicebus.*;
import com.azure.messaging.servicebus.models.*;

import java.time.Duration;
import java.time.OffsetDateTime;
import java.util.ArrayList;
import java.util.List;

/** What a Java program does with a topic and its subscriptions, by the unmodified azure-messaging-servicebus. */
public final class Topics {
    static final String TOPIC = "java-events";

    static ServiceBusReceiverClient receiver(String subscription, SubQueue from) {
        var b = ServiceBus.builder(ServiceBus.CONNECTION).receiver().topicName(TOPIC).subscriptionName(subscription).disableAutoComplete().maxAutoLockRenewDuration(Duration.ZERO);
        return (from == null ? b : b.subQueue(from)).buildClient();
    }

    static List<ServiceBusReceivedMessage> completed(String subscription, SubQueue from, int n) {
        try (ServiceBusReceiverClient r = receiver(subscription, from)) {
            List<ServiceBusReceivedMessage> all = ServiceBus.receive(r, n);
            all.forEach(r::complete);
            return all;
        }
    }

    static List<String> ids(List<ServiceBusReceivedMessage> all) {
        List<String> ids = new ArrayList<>();
        all.forEach(m -> ids.add(m.getMessageId()));
        return ids;
    }

    static ServiceBusMessage message(String id, String subject, int amount, String color) {
        ServiceBusMessage m = new ServiceBusMessage("x").setMessageId(id).setSubject(subject);
        m.getApplicationProperties().put("amount", amount);
        m.getApplicationProperties().put("color", color);
        return m;
    }

    public static void main(String[] args) {
        Checks c = new Checks(args);
        ServiceBusSenderClient sender = ServiceBus.builder(ServiceBus.CONNECTION).sender().topicName(TOPIC).buildClient();

        c.check("each subscription gets what its rules select", () -> {
            sender.sendMessages(List.of(message("small", "order", 40, "blue"), message("large", "orders", 400, "blue"), message("other", "invoice", 4000, "red")));
            Checks.equal(ids(completed("all", null, 3)), List.of("small", "large", "other"));
            ServiceBusReceivedMessage m = completed("large", null, 1).get(0);
            Checks.equal(List.of(m.getMessageId(), m.getApplicationProperties().get("size"), m.getApplicationProperties().get("RuleName")), List.of("large", "large", "amount"));
            Checks.equal(ids(completed("blue", null, 1)), List.of("small"));
        });
        c.check("dead letters of a subscription", () -> {
            sender.sendMessage(new ServiceBusMessage("x").setMessageId("dead"));
            try (ServiceBusReceiverClient r = receiver("all", null)) {
                r.deadLetter(ServiceBus.receive(r, 1).get(0), new DeadLetterOptions().setDeadLetterReason("Bad"));
            }
            ServiceBusReceivedMessage m = completed("all", SubQueue.DEAD_LETTER_QUEUE, 1).get(0);
            Checks.equal(List.of(m.getMessageId(), m.getDeadLetterReason(), m.getDeadLetterSource()), List.of("dead", "Bad", TOPIC + "/Subscriptions/all"));
        });
        c.check("schedule on a topic", () -> {
            sender.scheduleMessage(new ServiceBusMessage("x").setMessageId("later"), OffsetDateTime.now().plusNanos(500_000_000));
            Checks.equal(ids(completed("all", null, 1)), List.of("later"));
        });

        sender.close();
        c.finish("Java Service Bus topics");
    }
}
