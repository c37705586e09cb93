import com.azure.core.amqp.exception.AmqpErrorCondition;
import com.azure.core.amqp.exception.AmqpException;
import com.azure.messaging.servicebus.*;

import java.time.Duration;
import java.util.List;

/** What a Java program does with a queue that requires sessions, by the unmodified azure-messaging-servicebus. */
public final class Sessions {
    static final String QUEUE = "java-sessions";

    static ServiceBusSessionReceiverClient sessions() {
        return ServiceBus.builder(ServiceBus.CONNECTION).sessionReceiver().queueName(QUEUE).disableAutoComplete().maxAutoLockRenewDuration(Duration.ZERO).buildClient();
    }

    static ServiceBusMessage message(String session, String id) {
        return new ServiceBusMessage(id).setSessionId(session).setMessageId(id);
    }

    public static void main(String[] args) {
        Checks c = new Checks(args);
        ServiceBusSenderClient sender = ServiceBus.builder(ServiceBus.CONNECTION).sender().queueName(QUEUE).buildClient();
        ServiceBusSessionReceiverClient sessions = sessions();

        c.check("a session by its name, in order", () -> {
            sender.sendMessages(List.of(message("a", "a1"), message("b", "b1"), message("a", "a2")));
            try (ServiceBusReceiverClient r = sessions.acceptSession("a")) {
                Checks.equal(r.getSessionId(), "a");
                List<ServiceBusReceivedMessage> all = ServiceBus.receive(r, 2);
                Checks.equal(Topics.ids(all), List.of("a1", "a2"));
                all.forEach(r::complete);
            }
        });
        c.check("the next session", () -> {
            try (ServiceBusReceiverClient r = sessions.acceptNextSession()) {
                Checks.equal(r.getSessionId(), "b");
                r.abandon(ServiceBus.receive(r, 1).get(0));
                ServiceBusReceivedMessage m = ServiceBus.receive(r, 1).get(0);
                Checks.equal(List.of(m.getMessageId(), m.getDeliveryCount(), m.getSessionId()), List.of("b1", 1L, "b"));
                r.complete(m);
            }
        });
        c.check("a session that another has locked", () -> {
            try (ServiceBusReceiverClient r = sessions.acceptSession("held"); ServiceBusSessionReceiverClient other = sessions()) {
                Checks.equal(Checks.fails(AmqpException.class, () -> other.acceptSession("held")).getErrorCondition(), AmqpErrorCondition.SESSION_CANNOT_BE_LOCKED);
            }
        });
        c.check("state and renewal", () -> {
            try (ServiceBusReceiverClient r = sessions.acceptSession("state")) {
                Checks.equal(r.getSessionState(), null);
                r.setSessionState("so far".getBytes());
                Checks.equal(new String(r.getSessionState()), "so far");
                Checks.equal(r.renewSessionLock() != null, true);
                r.setSessionState(null);
            }
        });

        sender.close();
        sessions.close();
        c.finish("Java Service Bus sessions");
    }
}
